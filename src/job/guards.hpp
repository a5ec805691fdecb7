/// What went wrong although nothing crashed. One function per guard, on plain data; each answers with what it
/// found in words, and with nothing when all is well.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/job/cell_run.hpp"
#include "src/job/measurement.hpp"
#include "src/plan/traffic.hpp"

namespace hcp {

/// What one rank posted must be what its plan says, bytes and messages of every peer, level and payload.
[[nodiscard]] std::vector<std::string> unplanned_traffic(const TrafficLedger& planned,
                                                         const TrafficLedger& counted);

/// One level of a scheme in one pass.
struct LevelActivity {
  int level = 0;
  Pass pass = Pass::forward;
  std::int64_t bytes = 0;  ///< sent
  bool must_communicate = false;
};

/// What one rank sent, and what it knows of who must, for every level of a scheme and every pass of `passes`.
/// @param sent  of this scheme alone
[[nodiscard]] std::vector<LevelActivity> level_activity(const LayerGeometry& geometry, int cp_rank,
                                                        const TrafficLedger& sent, PassSelection passes);

/// A level that must communicate must have moved something.
/// @param activity  of all ranks together
[[nodiscard]] std::optional<std::string> silent_level(const std::string& scheme,
                                                      const LevelActivity& activity);

/// No rank computes at more than twice the peak of its threads.
/// @param flops    of one iteration
/// @param seconds  of the fastest one
[[nodiscard]] std::optional<std::string> impossible_rate(double flops, double seconds, double peak_flops);

/// All guards on a measured cell: what this rank found; what concerns all ranks is found by rank 0.
/// Collective over the world.
/// @param peak_flops  of one rank
[[nodiscard]] std::vector<std::string> broken_guards(const Measurement& measurement, const JobConfig& config,
                                                     const CellRun& cell, const JobPlan& plan,
                                                     const HierarchicalCommunicators& communicators,
                                                     double peak_flops);

}  // namespace hcp
