#include "kernels/cuda/devices.hpp"

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>

#include "kernels/cuda/check.hpp"

namespace hcp {
namespace {

/// 13020 -> "13.2".
std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// The runtime has the same words for no driver at all and for one that is too old.
std::string text_of(cudaError_t error) {
  int driver = 0;
  if (error != cudaErrorInsufficientDriver || cudaDriverGetVersion(&driver) != cudaSuccess) {
    return cudaGetErrorString(error);
  }
  return driver == 0 ? "there is no CUDA driver here"
                     : "the driver is for CUDA " + version_text(driver) + ", this hcp for CUDA " +
                           version_text(CUDART_VERSION);
}

DeviceSearch none(cudaError_t reason) {
  DeviceSearch nothing{.names = {}, .indices = {}, .pci_bus_ids = {}, .reason = text_of(reason)};
  static_cast<void>(cudaGetLastError());  // no later call is blamed for it
  return nothing;
}

/// What the kernels miss on a device; empty if nothing.
std::string lack_of(const cudaDeviceProp& properties) {
  constexpr std::size_t shared_kib = 163;  // of sm_80; kernel_budgets.txt has the kernels' own
  if (properties.major >= 8 && properties.sharedMemPerBlockOptin >= shared_kib << 10) {
    return {};
  }
  return std::string{static_cast<const char*>(properties.name)} + " has compute capability " +
         std::to_string(properties.major) + "." + std::to_string(properties.minor) + " and " +
         std::to_string(properties.sharedMemPerBlockOptin >> 10) +
         " KiB of shared memory for a block; 8.0 and " + std::to_string(shared_kib) + " KiB are needed";
}

/// As the operating system writes it. A device is function 0 of its place on the bus.
std::string pci_bus_id(const cudaDeviceProp& properties) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.0", static_cast<unsigned>(properties.pciDomainID),
                static_cast<unsigned>(properties.pciBusID), static_cast<unsigned>(properties.pciDeviceID));
  return text.data();
}

/// Of one multiprocessor. Later architectures than those known count as the last one known.
double multiply_adds_per_cycle(int major, DataType type) {
  if (type == DataType::fp32) {
    return major == 8 ? 64 : 128;
  }
  return major == 8 ? 1024 : major == 9 ? 2048 : 4096;
}

}  // namespace

DeviceSearch find_devices() {
  int count = 0;  // stays as it is where there is no driver
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result != cudaSuccess || count == 0) {
    return none(result != cudaSuccess ? result : cudaErrorNoDevice);
  }
  DeviceSearch found;
  std::string reason;
  for (int device = 0; device < count; ++device) {
    cudaDeviceProp properties{};
    if (const cudaError_t answer = cudaGetDeviceProperties(&properties, device); answer != cudaSuccess) {
      return none(answer);
    }
    if (const std::string lack = lack_of(properties); !lack.empty()) {
      reason = lack;
      continue;
    }
    found.names.emplace_back(static_cast<const char*>(properties.name));
    found.indices.push_back(device);
    found.pci_bus_ids.push_back(pci_bus_id(properties));
  }
  if (found.names.empty()) {
    found.reason = reason;
  }
  return found;
}

double device_peak_flops(int device, DataType type) {
  int major = 0;
  int multiprocessors = 0;
  int kilohertz = 0;
  for (const auto& [value, attribute] : {std::pair{&major, cudaDevAttrComputeCapabilityMajor},
                                         {&multiprocessors, cudaDevAttrMultiProcessorCount},
                                         {&kilohertz, cudaDevAttrClockRate}}) {
    cuda::check(cudaDeviceGetAttribute(value, attribute, device), "cudaDeviceGetAttribute");
  }
  return 2.0 * multiply_adds_per_cycle(major, type) * multiprocessors * kilohertz * 1e3;
}

std::string cuda_build() {
  return HCP_CUDA_BUILD;
}

}  // namespace hcp
