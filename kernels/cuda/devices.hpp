/// Which devices answer, and with what CUDA this program was built. Nothing here throws for want of a device,
/// a driver or CUDA itself.
#pragma once

#include <string>
#include <vector>

namespace hcp {

struct DeviceSearch {
  std::vector<std::string> names;  ///< of the devices that this process sees, by index
  std::string reason;              ///< why there are none; empty if there is one
};

/// Asks the CUDA runtime; not a moment is spent on a device.
[[nodiscard]] DeviceSearch find_devices();

/// "13.0.88 for 80-real 90-real", or why there is none.
[[nodiscard]] std::string cuda_build();

}  // namespace hcp
