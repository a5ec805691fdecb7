/// What all blocks of a launch share while it runs.
#pragma once

#include <cstddef>
#include <span>

#include "tests/ptx/interpreter.hpp"
#include "tests/ptx/kernel.hpp"

namespace hcp::ptx {

class GlobalMemory;

struct LaunchState {
  const Kernel& kernel;
  Extent grid;
  Extent block;
  std::uint32_t dynamic_shared_bytes = 0;
  std::span<const std::byte> parameters;
  const RunOptions& options;
  GlobalMemory& global;

  [[nodiscard]] std::uint32_t threads() const { return block[0] * block[1] * block[2]; }
  [[nodiscard]] int warps() const { return static_cast<int>((threads() + warp_lanes - 1) / warp_lanes); }
  [[nodiscard]] std::uint32_t shared_bytes() const {
    return kernel.static_shared_bytes + dynamic_shared_bytes;
  }
};

}  // namespace hcp::ptx
