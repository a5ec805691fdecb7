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
/// @throws std::invalid_argument if the user insists on devices, be it by their transport, and cannot have
/// them, or wants two back ends at once
[[nodiscard]] ChosenBackEnd choose_back_end(const JobConfig& config,
                                            const std::function<DeviceSearch()>& search);

}  // namespace hcp
