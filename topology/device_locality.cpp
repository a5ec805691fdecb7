#include "topology/device_locality.hpp"

#include <hwloc.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <type_traits>

namespace hcp {
namespace {

void check(int result, const char* call) {
  if (result != 0) {
    throw std::runtime_error{std::string{call} + ": " + std::strerror(errno)};
  }
}

struct FreeBitmap {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<std::remove_pointer_t<hwloc_bitmap_t>, FreeBitmap>;

/// Empty.
hwloc_topology_t made() {
  hwloc_topology_t topology = nullptr;
  check(hwloc_topology_init(&topology), "hwloc_topology_init");
  return topology;
}

void load(hwloc_topology_t topology) {
  check(hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT),
        "hwloc_topology_set_io_types_filter");
  // CPUs that this process may not use belong to packages all the same.
  check(hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED),
        "hwloc_topology_set_flags");
  check(hwloc_topology_load(topology), "hwloc_topology_load");
}

}  // namespace

void DeviceLocality::Destroy::operator()(hwloc_topology* topology) const {
  hwloc_topology_destroy(topology);
}

DeviceLocality::DeviceLocality(Topology loaded) : topology_{std::move(loaded)} {}

DeviceLocality::DeviceLocality() : topology_{made()} {
  // These plug-ins ask the drivers of devices, which takes long. One that is not installed is an error of the
  // call, but none of ours.
  for (const char* name : {"cuda", "nvml", "opencl", "rsmi", "levelzero", "gl"}) {
    static_cast<void>(
        hwloc_topology_set_components(topology_.get(), HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, name));
  }
  load(topology_.get());
}

DeviceLocality DeviceLocality::from_xml(std::string_view xml) {
  Topology topology{made()};
  const std::string text{xml};
  check(hwloc_topology_set_xmlbuffer(topology.get(), text.c_str(), static_cast<int>(text.size()) + 1),
        "hwloc_topology_set_xmlbuffer");
  load(topology.get());
  return DeviceLocality{std::move(topology)};
}

int DeviceLocality::distance(std::string_view cpus, const std::string& pci_bus_id) const {
  enum { same_part = 0, same_package = 1, elsewhere = 2 };
  const hwloc_obj_t device = hwloc_get_pcidev_by_busidstring(topology_.get(), pci_bus_id.c_str());
  if (device == nullptr) {
    return elsewhere;
  }
  const Bitmap own{hwloc_bitmap_alloc()};
  check(hwloc_bitmap_list_sscanf(own.get(), std::string{cpus}.c_str()), "hwloc_bitmap_list_sscanf");
  const hwloc_obj_t part = hwloc_get_non_io_ancestor_obj(topology_.get(), device);
  if (hwloc_bitmap_isincluded(own.get(), part->cpuset) != 0) {
    return same_part;
  }
  const hwloc_obj_t package = hwloc_get_ancestor_obj_by_type(topology_.get(), HWLOC_OBJ_PACKAGE, part);
  return package != nullptr && hwloc_bitmap_isincluded(own.get(), package->cpuset) != 0 ? same_package
                                                                                        : elsewhere;
}

}  // namespace hcp
