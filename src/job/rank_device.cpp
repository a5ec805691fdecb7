#include "src/job/rank_device.hpp"

#include <cstddef>
#include <optional>
#include <sstream>
#include <vector>

#include "topology/device_locality.hpp"
#include "topology/mpi_collectives.hpp"
#include "topology/nearest_devices.hpp"

namespace hcp {
namespace {

std::vector<VisibleDevice> visible(const DeviceSearch& found, const std::string& binding) {
  // A rank that sees one device, as a batch system may arrange it, has nothing to choose.
  std::optional<DeviceLocality> locality;
  if (found.names.size() > 1) {
    locality.emplace();
  }
  std::vector<VisibleDevice> devices;
  for (const std::string& id : found.pci_bus_ids) {
    devices.push_back({id, locality ? locality->distance(binding, id) : 0});
  }
  return devices;
}

/// Of every rank, by world rank.
std::vector<std::vector<VisibleDevice>> gathered(const std::vector<VisibleDevice>& mine,
                                                 const MpiCommunicator& world) {
  std::ostringstream words;
  for (const VisibleDevice& device : mine) {
    words << device.id << ' ' << device.distance << ' ';
  }
  std::vector<std::vector<VisibleDevice>> of_ranks;
  for (const std::string& text : all_gather(world, words.str())) {
    std::istringstream rest{text};
    std::vector<VisibleDevice>& devices = of_ranks.emplace_back();
    for (VisibleDevice device; rest >> device.id >> device.distance;) {
      devices.push_back(device);
    }
  }
  return of_ranks;
}

}  // namespace

RankDevice choose_device(const DeviceSearch& found, const std::string& binding, const NodeLayout& layout,
                         const MpiCommunicator& world) {
  const std::vector<std::vector<VisibleDevice>> of_ranks = gathered(visible(found, binding), world);
  const auto me = static_cast<std::size_t>(world.rank());
  std::vector<std::vector<VisibleDevice>> of_host;
  std::size_t my_place = 0;
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
    if (layout.host_of_rank[rank] == layout.host_of_rank[me]) {
      if (rank == me) {
        my_place = of_host.size();
      }
      of_host.push_back(of_ranks[rank]);
    }
  }
  const auto chosen = static_cast<std::size_t>(nearest_devices(of_host).at(my_place));
  return {.index = found.indices.at(chosen),
          .name = found.names.at(chosen),
          .pci_bus_id = found.pci_bus_ids.at(chosen)};
}

}  // namespace hcp
