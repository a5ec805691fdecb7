/// What one rank did when, kept in memory while the clock runs.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "src/exchange/exchange_plan.hpp"

namespace hcp {

enum class PhaseKind : std::uint8_t { compute, post, wait, pack, copy };
[[nodiscard]] std::string_view name_of(PhaseKind kind);

struct Phase {
  double begin_s = 0.0;  ///< as now_s()
  double end_s = 0.0;
  std::int64_t bytes = 0;  ///< posted, awaited or moved; 0 for compute
  std::int32_t peer = -1;  ///< CP rank, where there is exactly one
  std::int32_t layer = 0;
  std::int16_t level = -1;  ///< -1: outside any level
  std::int16_t step = 0;
  PhaseKind kind = PhaseKind::compute;
  Pass pass = Pass::forward;
};

using PhaseLog = std::vector<Phase>;

/// Told of each phase before it begins, for a watchdog: layer, pass, level and step are known by then. Once
/// more before the host waits for a device to finish it, which is later than when the host asked for it.
using PhaseObserver = std::function<void(const Phase&)>;

}  // namespace hcp
