/// From a measurement to a result: figures, guards, verification, verdict.
#pragma once

#include "src/job/measurement.hpp"
#include "src/job/setup.hpp"
#include "src/trace/trace_rows.hpp"

namespace hcp {

/// Collective over the world. What is wrong is said on stderr.
[[nodiscard]] ResultRow judge(const Measurement& measurement, const JobConfig& config, const JobPlan& plan,
                              const Input& input, const HierarchicalCommunicators& communicators,
                              CellRun& cell, const RankFacts& facts, Watchdog& watchdog);

}  // namespace hcp
