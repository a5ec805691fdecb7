#include "kernels/cuda/back_end.hpp"

#include <string>

#include "kernels/cuda/check.hpp"
#include "kernels/cuda/cuda_attention_kernel.hpp"
#include "kernels/cuda/device_memory.hpp"
#include "kernels/cuda/device_phase_clock.hpp"
#include "kernels/cuda/stream.hpp"

namespace hcp {

BackEnd make_cuda_back_end(int device) {
  cuda::check(cudaSetDevice(device), "cudaSetDevice(" + std::to_string(device) + ")");
  const auto stream = std::make_shared<cuda::Stream>();
  const auto memory = std::make_shared<cuda::DeviceMemory>(stream);
  return {.memory = memory,
          .kernel = cuda::make_cuda_attention_kernel(stream, memory),
          .clock = cuda::make_device_phase_clock(stream),
          .stream = stream};
}

}  // namespace hcp
