/// Loops over the lanes of a warp, in the form that the compiler turns into vector instructions.
#pragma once

#include <array>
#include <bit>
#include <cstddef>

#include "tests/ptx/instruction.hpp"

namespace hcp::ptx {

/// Calls `body(lane)` for every lane of `mask`, ascending.
template <typename Body>
void for_each_lane(LaneMask mask, Body&& body) {
  for (; mask != 0; mask &= mask - 1) {
    body(std::countr_zero(mask));
  }
}

/// destination[l] = value(l) for the lanes of `mask`. `value` is called for all lanes and reads only lane l,
/// so that the destination may be one of its sources.
template <typename T, typename Value>
void set_lanes(T* destination, LaneMask mask, Value&& value) {
  if (mask == all_lanes) {
#pragma GCC ivdep
    for (int lane = 0; lane < warp_lanes; ++lane) {
      destination[lane] = value(lane);
    }
    return;
  }
#pragma GCC ivdep
  for (int lane = 0; lane < warp_lanes; ++lane) {
    const T result = value(lane);
    destination[lane] = (mask >> lane & 1) != 0 ? result : destination[lane];
  }
}

}  // namespace hcp::ptx
