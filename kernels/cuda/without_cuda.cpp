// What the program offers of kernels/cuda where it is built without CUDA.

#include <stdexcept>

#include "kernels/cuda/back_end.hpp"
#include "kernels/cuda/devices.hpp"

namespace hcp {
namespace {

constexpr const char* built_without = "this hcp was built without CUDA";

}  // namespace

DeviceSearch find_devices() {
  return {.names = {}, .indices = {}, .pci_bus_ids = {}, .reason = built_without};
}

double device_peak_flops(int /*device*/, DataType /*type*/) {
  throw std::runtime_error{built_without};
}

std::string cuda_build() {
  return "none (built without)";
}

BackEnd make_cuda_back_end(int /*device*/) {
  throw std::runtime_error{built_without};
}

}  // namespace hcp
