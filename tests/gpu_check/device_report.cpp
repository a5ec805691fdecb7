// What the device, its driver and this program are, a line each. Exit status 77 and the reason where no
// device answers.

#include <cuda_runtime_api.h>

#include <exception>
#include <iostream>
#include <string>

#include "kernels/cuda/check.hpp"
#include "kernels/cuda/devices.hpp"

namespace {

using hcp::cuda::check;

int attribute(cudaDeviceAttr which) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, 0), "cudaDeviceGetAttribute");
  return value;
}

/// 13000 is 13.0.
std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

void report() {
  int driver = 0;
  int runtime = 0;
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  std::cout << "device: " << static_cast<const char*>(properties.name) << "\n"
            << "devices: " << hcp::find_devices().names.size() << "\n"
            << "compute capability: " << properties.major << "." << properties.minor << "\n"
            << "multiprocessors: " << properties.multiProcessorCount << "\n"
            << "memory: " << (properties.totalGlobalMem >> 20U) << " MiB\n"
            << "L2 cache: " << (properties.l2CacheSize >> 20U) << " MiB\n"
            << "shared memory per block, at most: " << properties.sharedMemPerBlockOptin << " B\n"
            << "highest clock: " << attribute(cudaDevAttrClockRate) / 1000 << " MHz\n"
            << "highest memory clock: " << attribute(cudaDevAttrMemoryClockRate) / 1000 << " MHz\n"
            << "CUDA that the driver knows: " << version_text(driver) << "\n"
            << "CUDA runtime: " << version_text(runtime) << "\n"
            << "built with nvcc: " << hcp::cuda_build() << "\n";
}

}  // namespace

int main() {
  constexpr int skipped = 77;
  try {
    const hcp::DeviceSearch search = hcp::find_devices();
    if (search.names.empty()) {
      std::cout << "no device answers: " << search.reason << std::endl;
      return skipped;
    }
    report();
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "device_report: " << error.what() << std::endl;
    return 1;
  }
}
