#include "src/job/back_end.hpp"

#include <stdexcept>

namespace hcp {
namespace {

/// Why a run cannot use CUDA. Nothing can as long as no transport moves messages between devices.
std::string obstacle(const DeviceSearch& devices) {
  if (devices.names.empty()) {
    return "no device answers: " + devices.reason;
  }
  return devices.names.front() +
         " answers, but the device path needs device transports, which are not built yet";
}

}  // namespace

void check_back_end(const JobConfig& config, const DeviceSearch& devices) {
  const bool by_back_end = config.backend == BackendChoice::cuda;
  if (by_back_end || config.attention_kernel == KernelChoice::cuda) {
    throw std::invalid_argument{std::string{by_back_end ? "--backend" : "--attention-kernel"} +
                                " cuda: " + obstacle(devices) + "; use cpu"};
  }
}

std::string describe_back_end(const JobConfig& config, const DeviceSearch& devices) {
  return config.backend == BackendChoice::cpu ? "cpu" : "cpu (" + obstacle(devices) + ")";
}

}  // namespace hcp
