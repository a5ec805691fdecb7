/// The device that a rank computes on.
#pragma once

#include <string>

#include "kernels/cuda/devices.hpp"
#include "topology/host_facts.hpp"
#include "topology/node_layout.hpp"

namespace hcp {

struct RankDevice {
  int index = 0;             ///< as in DeviceSearch::indices
  std::string name{};        ///< "NVIDIA H200"
  std::string pci_bus_id{};  ///< "0000:1b:00.0"

  /// "NVIDIA H200 0000:1b:00.0".
  [[nodiscard]] std::string text() const { return name + " " + pci_bus_id; }
};

/// Of those that this rank sees, the nearest to its CPUs that is left by the other ranks of its host, as
/// nearest_devices. Collective over `world`.
/// @param found  at least one device
/// @param binding  CPUs of this rank, as HostFacts
[[nodiscard]] RankDevice choose_device(const DeviceSearch& found, const std::string& binding,
                                       const NodeLayout& layout, const MpiCommunicator& world);

}  // namespace hcp
