/// Scratch memory of the host kernel: the same for every block, whatever its length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace hcp {

/// Of one thread. As large as a huge page: where the system gives one, packed keys do not meet by chance in
/// the same sets of the second-level cache.
inline constexpr std::size_t workspace_bytes = std::size_t{2} << 20;

/// One per thread, kept from call to call. Untouched until its thread writes it, so it lies near that thread.
class Workspaces {
 public:
  explicit Workspaces(int threads);

  /// Aligned to its size.
  [[nodiscard]] std::byte* of(std::int64_t thread) const {
    return memory_[static_cast<std::size_t>(thread)].get();
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::vector<std::unique_ptr<std::byte, Free>> memory_;
};

}  // namespace hcp
