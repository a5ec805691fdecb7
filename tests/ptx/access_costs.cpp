#include "tests/ptx/access_costs.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "tests/ptx/lane_loop.hpp"

namespace hcp::ptx {

namespace {

constexpr std::uint32_t bank_row_bytes = 128;

// The lanes of one pass: how many different units does the busiest bank serve?
std::uint32_t busiest_bank(const LaneAddresses& addresses, LaneMask mask, std::uint32_t unit) {
  const int shift = std::countr_zero(unit);  // units and banks are powers of two
  const std::uint64_t bank_mask = bank_row_bytes / unit - 1;
  std::array<std::uint64_t, warp_lanes> first{};  // unit + 1; 0: none
  bool conflict = false;
  for_each_lane(mask, [&](int lane) {
    const std::uint64_t wanted = addresses[static_cast<std::size_t>(lane)] >> shift;
    std::uint64_t& seen = first[wanted & bank_mask];
    conflict = conflict || (seen != 0 && seen != wanted + 1);
    seen = wanted + 1;
  });
  if (!conflict) {
    return 1;
  }
  std::array<std::uint64_t, warp_lanes> units{};
  std::size_t count = 0;
  for_each_lane(mask, [&](int lane) { units[count++] = addresses[static_cast<std::size_t>(lane)] >> shift; });
  std::sort(units.begin(), units.begin() + count);
  const auto end = std::unique(units.begin(), units.begin() + count);
  std::array<std::uint32_t, warp_lanes> in_bank{};
  std::for_each(units.begin(), end, [&](std::uint64_t one) { ++in_bank[one & bank_mask]; });
  return *std::ranges::max_element(in_bank);
}

}  // namespace

BankPhases bank_phases(const LaneAddresses& addresses, LaneMask mask, std::uint32_t bytes) {
  const std::uint32_t unit = std::max(bytes, 4U);
  const std::uint32_t lanes = bank_row_bytes / unit;
  const LaneMask pass = lanes == warp_lanes ? all_lanes : (1U << lanes) - 1;
  BankPhases phases;
  for (std::uint32_t first = 0; first < warp_lanes; first += lanes) {
    const LaneMask served = mask & (pass << first);
    if (served != 0) {
      phases.taken += busiest_bank(addresses, served, unit);
      ++phases.needed;
    }
  }
  return phases;
}

std::uint32_t global_sectors(const LaneAddresses& addresses, LaneMask mask) {
  std::array<std::uint64_t, warp_lanes> sectors{};
  std::size_t count = 0;
  bool ascending = true;
  for_each_lane(mask, [&](int lane) {
    const std::uint64_t sector = addresses[static_cast<std::size_t>(lane)] / 32;
    if (count == 0 || sectors[count - 1] != sector) {
      ascending = ascending && (count == 0 || sectors[count - 1] < sector);
      sectors[count++] = sector;
    }
  });
  if (!ascending) {
    std::sort(sectors.begin(), sectors.begin() + count);
    count = static_cast<std::size_t>(std::unique(sectors.begin(), sectors.begin() + count) - sectors.begin());
  }
  return static_cast<std::uint32_t>(count);
}

}  // namespace hcp::ptx
