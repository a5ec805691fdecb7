/// Which back end computes, and why.
#pragma once

#include <string>

#include "kernels/cuda/devices.hpp"
#include "src/job/job_config.hpp"

namespace hcp {

/// @param devices  of this host
/// @throws std::invalid_argument if the user insists on CUDA and cannot have it
void check_back_end(const JobConfig& config, const DeviceSearch& devices);

/// For the header: the back end, and where the user left the choice, what decided. "cpu (no device answers:
/// no CUDA-capable device is detected)".
[[nodiscard]] std::string describe_back_end(const JobConfig& config, const DeviceSearch& devices);

}  // namespace hcp
