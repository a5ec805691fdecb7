#include "kernels/cuda/devices.hpp"

#include <cuda_runtime_api.h>

namespace hcp {
namespace {

DeviceSearch none(cudaError_t reason) {
  static_cast<void>(cudaGetLastError());  // no later call is blamed for it
  return {.names = {}, .reason = cudaGetErrorString(reason)};
}

}  // namespace

DeviceSearch find_devices() {
  int count = 0;  // stays as it is where there is no driver
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result != cudaSuccess || count == 0) {
    return none(result != cudaSuccess ? result : cudaErrorNoDevice);
  }
  DeviceSearch found;
  for (int device = 0; device < count; ++device) {
    cudaDeviceProp properties{};
    if (const cudaError_t answer = cudaGetDeviceProperties(&properties, device); answer != cudaSuccess) {
      return none(answer);
    }
    found.names.emplace_back(static_cast<const char*>(properties.name));
  }
  return found;
}

std::string cuda_build() {
  return HCP_CUDA_BUILD;
}

}  // namespace hcp
