/// Which back end computes, and why.
#pragma once

#include <functional>
#include <string>

#include "kernels/cuda/devices.hpp"
#include "src/job/job_config.hpp"

namespace hcp {

/// What the options and the machine come to.
struct ChosenBackEnd {
  BackendChoice back_end = BackendChoice::cpu;  ///< cpu or cuda
  std::string reason;  ///< where the user left the choice and it is cpu, what decided; else empty
};

/// @param search  finds the devices of this host; asked only if the answer depends on them
/// @param cp_size  ranks of a context-parallel group: more than one need transports between devices
/// @throws std::invalid_argument if the user insists on CUDA and cannot have it, or wants two back ends at
/// once
[[nodiscard]] ChosenBackEnd choose_back_end(const JobConfig& config,
                                            const std::function<DeviceSearch()>& search, int cp_size);

}  // namespace hcp
