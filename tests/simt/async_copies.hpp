/// The asynchronous copies of one thread. They land as late as they may: when the thread waits for them.
#pragma once

#include <cstddef>
#include <vector>

namespace hcp::simt {

class AsyncCopies {
 public:
  /// The target is NaN from now on. Zeros if not `valid`.
  void begin(void* target, const void* source, std::size_t bytes, bool valid);
  void close_group();
  /// Lands all groups but the `left` latest.
  void wait(std::size_t left);
  /// Whether a copy that was begun has not landed.
  [[nodiscard]] bool pending() const;

 private:
  struct Copy {
    void* target;
    const void* source;
    std::size_t bytes;
    bool valid;
  };
  std::vector<std::vector<Copy>> groups_;
  std::vector<Copy> open_;
};

}  // namespace hcp::simt
