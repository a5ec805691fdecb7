/// Times on a device.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "kernels/back_end.hpp"

namespace hcp::gpu_check {

/// Seconds of `work` on the device, median of 11 after 3 that do not count. All are asked for in one go, so
/// the device never waits for the host.
template <typename Work>
[[nodiscard]] double median_time(BackEnd& back_end, const char* name, Work work) {
  constexpr int warm_up = 3;
  constexpr int counted = 11;
  for (int i = 0; i < warm_up + counted; ++i) {
    back_end.clock->begin(name);
    work();
    back_end.clock->end();
  }
  const std::vector<PhaseClock::Interval> intervals = back_end.clock->read();
  std::vector<double> seconds;
  for (std::size_t i = warm_up; i < intervals.size(); ++i) {
    seconds.push_back(intervals[i].end_s - intervals[i].begin_s);
  }
  std::ranges::nth_element(seconds, seconds.begin() + counted / 2);
  return seconds[counted / 2];
}

}  // namespace hcp::gpu_check
