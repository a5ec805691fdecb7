/// What an access of a warp costs, by the memory's structure.
#pragma once

#include "tests/ptx/instruction.hpp"
#include "tests/ptx/warp.hpp"

namespace hcp::ptx {

struct BankPhases {
  std::uint32_t taken = 0;
  std::uint32_t needed = 0;  ///< without bank conflicts
};

/// Shared memory has 32 banks of 4 bytes. Up to 4 bytes per lane the whole warp is served together, 8 bytes
/// by half warps, 16 bytes by quarters; lanes that want the same bytes are served at once, others in the same
/// bank in turn.
[[nodiscard]] BankPhases bank_phases(const LaneAddresses& addresses, LaneMask mask, std::uint32_t bytes);

/// How many different sectors of 32 bytes the lanes touch. Accesses are aligned to their size.
[[nodiscard]] std::uint32_t global_sectors(const LaneAddresses& addresses, LaneMask mask);

}  // namespace hcp::ptx
