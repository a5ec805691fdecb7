/// The one place that launches kernels.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <utility>

#include "kernels/cuda/kernel_entry.hpp"
#include "kernels/cuda/stream.hpp"

namespace hcp::cuda {

/// Blocks of a launch.
struct Grid {
  std::int64_t x = 0;
  std::int64_t y = 1;
};

/// Launches on one stream of the current device.
class Launcher {
 public:
  explicit Launcher(std::shared_ptr<Stream> stream) : stream_{std::move(stream)} {}

  /// Nothing, if the grid is empty. `parameters` are the kernel's one argument, by value.
  /// @throws std::runtime_error that names the kernel
  template <typename Parameters>
  void launch(const KernelEntry& kernel, Grid grid, Parameters parameters) {
    launch_with(kernel, grid, &parameters);
  }

 private:
  void launch_with(const KernelEntry& kernel, Grid grid, void* parameters);

  std::shared_ptr<Stream> stream_;
  std::set<const void*> admitted_;  ///< kernels that may use more shared memory than any kernel may
};

}  // namespace hcp::cuda
