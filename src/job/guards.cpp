#include "src/job/guards.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <set>

#include "topology/mpi_collectives.hpp"

namespace hcp {
namespace {

Traffic traffic_of(const TrafficLedger& ledger, const TrafficKey& key) {
  const auto found = ledger.find(key);
  return found == ledger.end() ? Traffic{} : found->second;
}

std::string text_of(const Traffic& traffic) {
  return std::to_string(traffic.bytes) + " bytes in " + std::to_string(traffic.messages) + " messages";
}

TrafficLedger times(TrafficLedger ledger, int iterations) {
  for (auto& [key, traffic] : ledger) {
    traffic.bytes *= iterations;
    traffic.messages *= iterations;
  }
  return ledger;
}

/// Sums the bytes of all ranks, and lets one rank's knowledge of who must communicate be everybody's.
void add_up(const MpiCommunicator& world, std::vector<LevelActivity>& activities) {
  std::vector<std::int64_t> values;
  for (const LevelActivity& activity : activities) {
    values.push_back(activity.bytes);
    values.push_back(activity.must_communicate ? 1 : 0);
  }
  all_reduce(world, Reduction::sum, values);
  for (std::size_t i = 0; i < activities.size(); ++i) {
    activities[i].bytes = values[2 * i];
    activities[i].must_communicate = values[2 * i + 1] > 0;
  }
}

}  // namespace

std::vector<std::string> unplanned_traffic(const TrafficLedger& planned, const TrafficLedger& counted) {
  std::set<TrafficKey> keys;
  for (const TrafficLedger* ledger : {&planned, &counted}) {
    std::transform(ledger->begin(), ledger->end(), std::inserter(keys, keys.end()),
                   [](const auto& entry) { return entry.first; });
  }
  std::vector<std::string> found;
  for (const TrafficKey& key : keys) {
    const Traffic wanted = traffic_of(planned, key);
    const Traffic sent = traffic_of(counted, key);
    if (sent != wanted) {
      found.push_back("sent " + text_of(sent) + " of " + std::string{name_of(key.payload)} + " to CP rank " +
                      std::to_string(key.peer_cp_rank) + " at level " + std::to_string(key.level) + " in " +
                      std::string{name_of(key.pass)} + ", planned were " + text_of(wanted));
    }
  }
  return found;
}

std::vector<LevelActivity> level_activity(const LayerGeometry& geometry, int cp_rank,
                                          const TrafficLedger& sent, PassSelection passes) {
  std::vector<LevelActivity> activities;
  for (int level = 0; level < static_cast<int>(geometry.levels.size()); ++level) {
    const bool must_communicate = level_must_communicate(geometry, level, cp_rank);
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      if (!includes(passes, pass)) {
        continue;
      }
      std::int64_t bytes = 0;
      for (const auto& [key, traffic] : sent) {
        bytes += key.level == level && key.pass == pass ? traffic.bytes : 0;
      }
      activities.push_back({level, pass, bytes, must_communicate});
    }
  }
  return activities;
}

std::optional<std::string> silent_level(const std::string& scheme, const LevelActivity& activity) {
  if (!activity.must_communicate || activity.bytes > 0) {
    return std::nullopt;
  }
  return "level " + std::to_string(activity.level) + " of " + scheme +
         " must communicate but moved nothing in " + std::string{name_of(activity.pass)};
}

std::optional<std::string> impossible_rate(double flops, double seconds, double peak_flops) {
  const double rate = flops / seconds;
  if (rate <= 2.0 * peak_flops) {
    return std::nullopt;
  }
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(),
                "computed at %.1f GFLOP/s, more than twice its peak of %.1f GFLOP/s", rate * 1e-9,
                peak_flops * 1e-9);
  return text.data();
}

std::vector<std::string> broken_guards(const Measurement& measurement, const JobConfig& config,
                                       const CellRun& cell, const JobPlan& plan,
                                       const HierarchicalCommunicators& communicators, double peak_flops) {
  std::vector<std::string> broken;
  const std::string me = "rank " + std::to_string(communicators.grid_rank()) + ": ";
  for (int s = 0; s < static_cast<int>(plan.schemes().size()) && !config.compute_only; ++s) {
    const std::string scheme = plan.schemes()[static_cast<std::size_t>(s)].effective.name();
    const TrafficLedger counted = cell.counted(s);
    for (const std::string& found :
         unplanned_traffic(times(cell.planned(s), measurement.executed), counted)) {
      broken.push_back(me + scheme + " " + found);
    }
    std::vector<LevelActivity> activities =
        level_activity(plan.geometry(s), communicators.cp_rank(), counted, config.pass);
    add_up(communicators.world(), activities);
    for (const LevelActivity& activity : activities) {
      const std::optional<std::string> found = silent_level(scheme, activity);
      if (found && communicators.grid_rank() == 0) {
        broken.push_back(*found);
      }
    }
  }
  if (!config.comm_only && !measurement.slowest_s.empty()) {
    const double fastest = *std::min_element(measurement.slowest_s.begin(), measurement.slowest_s.end());
    if (const auto found = impossible_rate(cell.flops(), fastest, peak_flops)) {
      broken.push_back(me + *found);
    }
  }
  return broken;
}

}  // namespace hcp
