/// Which device each rank of a host computes on.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace hcp {

/// A device as one rank sees it.
struct VisibleDevice {
  std::string id;    ///< the same on every rank of the host that sees the device
  int distance = 0;  ///< from the CPUs of the rank; any unit
};

/// Every rank gets the nearest device of those that fewest ranks have got so far. Who sees fewer devices
/// comes before who sees more; of equal distances the lower rank and then the device that it counts first
/// win. The same on every rank that asks with the same lists.
/// @param ranks  [rank of the host]: the devices that it sees, at least one
/// @return [rank of the host]: index into its list
/// @throws std::invalid_argument if a rank sees none
[[nodiscard]] std::vector<int> nearest_devices(std::span<const std::vector<VisibleDevice>> ranks);

}  // namespace hcp
