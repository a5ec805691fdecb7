#include "topology/nearest_devices.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <stdexcept>
#include <tuple>

namespace hcp {
namespace {

/// One rank on one device; the smallest is made first.
struct Match {
  int ranks_before = 0;     ///< that have the device already
  std::size_t choices = 0;  ///< devices that the rank sees
  int distance = 0;
  std::size_t rank = 0;
  std::size_t place = 0;  ///< of the device in the rank's list

  [[nodiscard]] auto order() const { return std::tie(ranks_before, choices, distance, rank, place); }
};

}  // namespace

std::vector<int> nearest_devices(std::span<const std::vector<VisibleDevice>> ranks) {
  constexpr int none = -1;
  std::vector<int> chosen(ranks.size(), none);
  std::map<std::string, int> ranks_of_device;
  for (std::size_t made = 0; made < ranks.size(); ++made) {
    std::vector<Match> possible;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      if (ranks[rank].empty()) {
        throw std::invalid_argument{"rank " + std::to_string(rank) + " of a host sees no device"};
      }
      for (std::size_t place = 0; chosen[rank] == none && place < ranks[rank].size(); ++place) {
        const VisibleDevice& device = ranks[rank][place];
        possible.push_back({ranks_of_device[device.id], ranks[rank].size(), device.distance, rank, place});
      }
    }
    const Match best = *std::ranges::min_element(possible, {}, &Match::order);
    chosen[best.rank] = static_cast<int>(best.place);
    ++ranks_of_device[ranks[best.rank][best.place].id];
  }
  return chosen;
}

}  // namespace hcp
