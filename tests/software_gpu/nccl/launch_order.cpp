#include "tests/software_gpu/nccl/launch_order.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>

namespace hcp::software_gpu {
namespace {

struct Place {
  int rank = 0;
  std::size_t launch = 0;
};

/// Both ends of the messages between two ranks by one communicator, in order.
struct Channel {
  std::string name;
  std::vector<Place> sends;
  std::vector<Place> receives;
};

/// By communicator, sender, receiver.
using Channels = std::map<std::tuple<std::int64_t, int, int>, Channel>;

Channels channels_of(const std::vector<std::vector<NcclLaunch>>& by_rank) {
  Channels channels;
  for (int rank = 0; rank < static_cast<int>(by_rank.size()); ++rank) {
    const std::vector<NcclLaunch>& launches = by_rank[static_cast<std::size_t>(rank)];
    for (std::size_t i = 0; i < launches.size(); ++i) {
      for (const int peer : launches[i].sends_to) {
        Channel& channel = channels[{launches[i].communicator, rank, peer}];
        channel.name = launches[i].name;
        channel.sends.push_back({rank, i});
      }
      for (const int peer : launches[i].receives_from) {
        Channel& channel = channels[{launches[i].communicator, peer, rank}];
        channel.name = launches[i].name;
        channel.receives.push_back({rank, i});
      }
    }
  }
  return channels;
}

/// The begin and the end of each launch, and what has to be before what.
class Moments {
 public:
  explicit Moments(const std::vector<std::vector<NcclLaunch>>& by_rank) : by_rank_{by_rank} {
    for (const auto& launches : by_rank) {
      first_.push_back(next_.size());
      next_.resize(next_.size() + 2 * launches.size());
    }
    waits_for_.resize(next_.size());
    for (int rank = 0; rank < static_cast<int>(by_rank.size()); ++rank) {
      for (std::size_t i = 0; i < by_rank[static_cast<std::size_t>(rank)].size(); ++i) {
        add(begin({rank, i}), end({rank, i}));
        if (i > 0) {
          add(end({rank, i - 1}), begin({rank, i}));
        }
      }
    }
  }

  void add_message(Place sender, Place receiver) {
    add(begin(sender), end(receiver));
    add(begin(receiver), end(sender));
  }

  /// Launches in a circle, each with the one that it waits for behind it; empty if there is none.
  [[nodiscard]] std::vector<Place> circle() const {
    const std::vector<bool> stuck = never_reached();
    auto moment = static_cast<std::size_t>(std::ranges::find(stuck, true) - stuck.begin());
    if (moment == stuck.size()) {
      return {};
    }
    std::vector<std::size_t> path;  // whatever is stuck waits for something that is
    while (std::ranges::find(path, moment) == path.end()) {
      path.push_back(moment);
      moment = *std::ranges::find_if(waits_for_[moment], [&](std::size_t before) { return stuck[before]; });
    }
    std::vector<Place> places;
    for (auto at = std::ranges::find(path, moment); at != path.end(); ++at) {
      const Place place = place_of(*at);
      if (places.empty() || places.back().rank != place.rank || places.back().launch != place.launch) {
        places.push_back(place);
      }
    }
    return places;
  }

 private:
  [[nodiscard]] std::size_t begin(Place place) const {
    return first_[static_cast<std::size_t>(place.rank)] + 2 * place.launch;
  }
  [[nodiscard]] std::size_t end(Place place) const { return begin(place) + 1; }
  [[nodiscard]] Place place_of(std::size_t moment) const {
    const auto rank = static_cast<std::size_t>(std::ranges::upper_bound(first_, moment) - first_.begin()) - 1;
    return {static_cast<int>(rank), (moment - first_[rank]) / 2};
  }
  void add(std::size_t before, std::size_t after) {
    next_[before].push_back(after);
    waits_for_[after].push_back(before);
  }

  [[nodiscard]] std::vector<bool> never_reached() const {
    std::vector<std::size_t> open(next_.size());
    std::vector<std::size_t> ready;
    for (std::size_t moment = 0; moment < open.size(); ++moment) {
      open[moment] = waits_for_[moment].size();
      if (open[moment] == 0) {
        ready.push_back(moment);
      }
    }
    std::vector<bool> stuck(next_.size(), true);
    while (!ready.empty()) {
      const std::size_t moment = ready.back();
      ready.pop_back();
      stuck[moment] = false;
      for (const std::size_t after : next_[moment]) {
        if (--open[after] == 0) {
          ready.push_back(after);
        }
      }
    }
    return stuck;
  }

  const std::vector<std::vector<NcclLaunch>>& by_rank_;
  std::vector<std::size_t> first_;  // moment of each rank
  std::vector<std::vector<std::size_t>> next_;
  std::vector<std::vector<std::size_t>> waits_for_;
};

std::string text_of(const Place& place, const std::vector<std::vector<NcclLaunch>>& by_rank) {
  return "launch " + std::to_string(place.launch) + " of rank " + std::to_string(place.rank) + " (" +
         by_rank[static_cast<std::size_t>(place.rank)][place.launch].name + ")";
}

}  // namespace

std::vector<std::string> launch_order_findings(const std::vector<std::vector<NcclLaunch>>& by_rank) {
  std::vector<std::string> findings;
  Moments moments{by_rank};
  for (const auto& [key, channel] : channels_of(by_rank)) {
    const auto& [communicator, sender, receiver] = key;
    const std::size_t sent = channel.sends.size();
    const std::size_t received = channel.receives.size();
    for (std::size_t k = 0; k < std::min(sent, received); ++k) {
      moments.add_message(channel.sends[k], channel.receives[k]);
    }
    if (sent != received) {
      findings.push_back(channel.name + ": rank " + std::to_string(sender) + " sends rank " +
                         std::to_string(receiver) + " " + std::to_string(sent) + " messages, of which " +
                         std::to_string(received) + " are asked for");
    }
  }
  const std::vector<Place> circle = moments.circle();
  if (!circle.empty()) {
    std::string text = "launches that wait for each other: ";
    for (const Place& place : circle) {
      text += text_of(place, by_rank) + " waits for ";
    }
    findings.push_back(text + text_of(circle.front(), by_rank));
  }
  return findings;
}

}  // namespace hcp::software_gpu
