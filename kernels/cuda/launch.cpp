#include "kernels/cuda/launch.hpp"

#include <string>

#include "kernels/cuda/check.hpp"

namespace hcp::cuda {
namespace {

/// More dynamic shared memory has to be asked for.
/// @source CUDA C++ programming guide, compute capabilities, technical specifications
constexpr int freely_shared_bytes = 48 << 10;

}  // namespace

void Launcher::launch_with(const KernelEntry& kernel, Grid grid, void* parameters) {
  if (grid.x == 0 || grid.y == 0) {
    return;
  }
  if (kernel.shared_bytes > freely_shared_bytes && !admitted_.contains(kernel.function)) {
    check(cudaFuncSetAttribute(kernel.function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               kernel.shared_bytes),
          "cudaFuncSetAttribute of " + std::string{kernel.name} + " for " +
              std::to_string(kernel.shared_bytes) + " B of shared memory");
    admitted_.insert(kernel.function);
  }
  void* arguments[] = {parameters};
  check(cudaLaunchKernel(kernel.function, dim3(static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y)),
                         dim3(static_cast<unsigned>(kernel.threads)), arguments,
                         static_cast<std::size_t>(kernel.shared_bytes), stream_->get()),
        "cudaLaunchKernel of " + std::string{kernel.name} + ", or work before it");
}

}  // namespace hcp::cuda
