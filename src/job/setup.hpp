/// The steps of a run before its first message: input, threads, trace, and the rows that describe them.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "src/job/cell_run.hpp"
#include "src/job/input.hpp"
#include "src/job/job_config.hpp"
#include "src/job/job_plan.hpp"
#include "src/trace/trace_file.hpp"
#include "topology/hierarchical_communicators.hpp"
#include "topology/host_facts.hpp"

namespace hcp {

/// What the values of q, k, v and dout are and where they come from.
struct Input {
  ProblemShape shape;
  std::unique_ptr<InputSource> source;
};

/// Reads the sizes of an input file, or takes those of the options.
/// @throws std::invalid_argument for a file or sizes that cannot be used
[[nodiscard]] Input open_input(const JobConfig& config);

/// Fills q, k, v and dout of every layer, and checks out where the input has it.
/// @throws std::invalid_argument if the file cannot be read or holds NaN or infinity in these rows
void load_input(const Input& input, const JobPlan& plan, const HierarchicalCommunicators& communicators,
                CellRun& cell);

/// Collective over `world`, the ranks as MPI numbered them.
[[nodiscard]] int threads_per_rank(const JobConfig& config, const HostFacts& facts, const NodeLayout& layout,
                                   const MpiCommunicator& world);

[[nodiscard]] std::unique_ptr<AttentionKernel> make_kernel(const JobConfig& config, int threads);

/// Creates the trace file with the provenance of the run. On rank 0 only.
/// @throws std::invalid_argument if the file exists or cannot be created there
[[nodiscard]] TraceFile create_trace(const JobConfig& config, const std::string& path);

[[nodiscard]] RankRow rank_row(const JobPlan& plan, const HierarchicalCommunicators& communicators,
                               const HostFacts& facts, int world_rank);
[[nodiscard]] CellRow cell_row(const JobConfig& config, const JobPlan& plan, int number);
[[nodiscard]] PlacementRow placement_row(const JobPlan& plan, const HierarchicalCommunicators& communicators,
                                         const CellRun& cell, int number);

/// The line of the header about this rank.
[[nodiscard]] std::string rank_line(const RankRow& rank, const PlacementRow& placement,
                                    const std::string& node);

}  // namespace hcp
