/// Which operation runs next, drawn at random.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <vector>

namespace hcp::software_gpu {

class Stream;

/// Of one seed. Seed 0 is no draw: at once and in the order of the calls. Others are, in turn,
///   lazy    nothing runs before something waits for it, then any stream's next operation may;
///   eager   as lazy, but after each call up to three operations run;
///   unfair  as lazy, but some streams go on for long while others stand still.
class Schedule {
 public:
  explicit Schedule(unsigned seed);

  [[nodiscard]] bool in_order() const { return seed_ == 0; }

  /// How many operations run after a call that brought one.
  [[nodiscard]] int operations_after_call();

  /// What may run next.
  struct Head {
    Stream* stream = nullptr;
    int number = 0;               ///< of the stream
    std::uint64_t submitted = 0;  ///< ascending in the order of the calls
  };
  /// In the order in which they are tried.
  void arrange(std::vector<Head>& heads);

 private:
  enum class Kind { lazy, eager, unfair };

  unsigned seed_;
  Kind kind_;
  std::mt19937 random_;
  std::map<int, std::uint32_t> ranks_;  ///< unfair: by number of the stream, the lowest first
};

}  // namespace hcp::software_gpu
