/// The cp.async of one warp that have not landed yet. Each lane has its own groups.
///
/// The bytes are copied as late as allowed, at the wait; whoever reads them earlier reads NaN.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tests/ptx/instruction.hpp"

namespace hcp::ptx {

class Warp;

class AsyncCopies {
 public:
  struct Batch {
    LaneMask lanes = 0;  ///< whose copy is still pending
    std::uint32_t bytes = 0;
    std::array<std::uint64_t, warp_lanes> source{};
    std::array<std::uint32_t, warp_lanes> source_bytes{};  ///< the rest becomes zero
    std::array<std::uint32_t, warp_lanes> target{};        ///< address in the shared window
    std::array<std::uint32_t, warp_lanes> group{};         ///< filled by add()
    int line = 0;
  };

  void reset();
  void add(Batch batch);
  void commit(LaneMask mask);
  /// Lands all but the last `kept` groups of each lane.
  void wait(Warp& warp, LaneMask mask, std::uint32_t kept);
  /// Lands everything, committed or not.
  void wait_all(Warp& warp, LaneMask mask);
  /// The lanes of `mask` that have a copy pending.
  [[nodiscard]] LaneMask pending(LaneMask mask) const;

 private:
  void land(Warp& warp, Batch& batch, LaneMask lanes);

  std::vector<Batch> batches_;
  std::array<std::uint32_t, warp_lanes> committed_{};  // groups of each lane
};

}  // namespace hcp::ptx
