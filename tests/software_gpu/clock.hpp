/// What comes before what: vector clocks of streams and the host.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hcp::software_gpu {

/// One operation: the count-th of its slot. Each stream has a slot of its own; the host, all of its threads
/// together, has slot 0. Counts begin at 1.
struct Stamp {
  std::uint32_t slot = 0;
  std::uint32_t count = 0;
  bool operator==(const Stamp&) const = default;
};

/// How much of each slot is done before something else begins.
class Clock {
 public:
  [[nodiscard]] bool covers(Stamp stamp) const {
    return stamp.slot < counts_.size() && counts_[stamp.slot] >= stamp.count;
  }
  void add(Stamp stamp) {
    if (counts_.size() <= stamp.slot) {
      counts_.resize(std::size_t{stamp.slot} + 1);
    }
    counts_[stamp.slot] = std::max(counts_[stamp.slot], stamp.count);
  }
  void join(const Clock& other) {
    counts_.resize(std::max(counts_.size(), other.counts_.size()));
    for (std::size_t slot = 0; slot < other.counts_.size(); ++slot) {
      counts_[slot] = std::max(counts_[slot], other.counts_[slot]);
    }
  }

 private:
  std::vector<std::uint32_t> counts_;  // by slot
};

}  // namespace hcp::software_gpu
