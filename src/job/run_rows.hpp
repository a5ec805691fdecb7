/// The rows of the trace that describe a run before it starts, and its provenance.
#pragma once

#include <string>

#include "src/job/cell_run.hpp"
#include "src/job/setup.hpp"
#include "src/trace/trace_file.hpp"

namespace hcp {

/// The device of a rank that computes with its host's cores.
inline constexpr const char* host_device = "cpu";

/// Creates the trace file with the provenance of the run; with the whole of every list of
/// which cell_row has only the first values. On rank 0 only.
/// @throws std::invalid_argument if the file exists or cannot be created there
[[nodiscard]] TraceFile create_trace(const JobConfig& config, const Transports& transports,
                                     const std::string& path);

[[nodiscard]] RankRow rank_row(const JobPlan& plan, const HierarchicalCommunicators& communicators,
                               const RankFacts& facts);
/// The row of a cell. Of a list of more than 64 values its options hold the first 64 and how many there are.
[[nodiscard]] CellRow cell_row(const JobConfig& config, const JobPlan& plan, int number);
[[nodiscard]] PlacementRow placement_row(const JobPlan& plan, const HierarchicalCommunicators& communicators,
                                         const CellRun& cell, int number);

}  // namespace hcp
