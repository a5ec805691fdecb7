/// How far CPUs are from devices on the PCI bus, as hwloc sees a machine.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct hwloc_topology;  // what hwloc_topology_t points to

namespace hcp {

class DeviceLocality {
 public:
  /// Of this machine; of its devices only the PCI bus is asked.
  /// @throws std::runtime_error if hwloc fails
  DeviceLocality();
  /// Of a machine that hwloc has described in its XML.
  /// @throws std::runtime_error if that is no such text
  [[nodiscard]] static DeviceLocality from_xml(std::string_view xml);

  /// From all of `cpus`, so a process that may run anywhere is equally far from every device.
  /// @param cpus  in Linux's list format, "0-3,8"
  /// @param pci_bus_id  "0000:1b:00.0"
  /// @return 0: the device hangs on their part of the machine (in most, a NUMA node or a package); 1: on
  ///         another part of their package; 2: elsewhere, or hwloc does not know it
  [[nodiscard]] int distance(std::string_view cpus, const std::string& pci_bus_id) const;

 private:
  struct Destroy {
    void operator()(hwloc_topology* topology) const;
  };
  using Topology = std::unique_ptr<hwloc_topology, Destroy>;
  explicit DeviceLocality(Topology loaded);

  Topology topology_;
};

}  // namespace hcp
