/// Launches a kernel of a KernelEntry on the host.
#pragma once

#include <cstddef>

#include "kernels/cuda/kernel_entry.hpp"
#include "tests/simt/launch.hpp"

namespace hcp::test {

/// Blocks of a launch.
struct Grid {
  std::size_t x = 1;
  std::size_t y = 1;
};

/// @throws simt::Fault
template <typename Parameters>
void simt_launch(const cuda::KernelEntry& kernel, const Grid& grid, simt::Order order,
                 const Parameters& parameters) {
  const auto body = reinterpret_cast<void (*)(Parameters)>(const_cast<void*>(kernel.function));
  simt::launch({.blocks_x = static_cast<int>(grid.x),
                .blocks_y = static_cast<int>(grid.y),
                .threads = kernel.threads,
                .shared_bytes = kernel.shared_bytes,
                .order = order},
               [&] { body(parameters); });
}

}  // namespace hcp::test
