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

/// Fills q, k, v and dout of every layer, and checks out where the input has it. Collective over the world.
/// @throws std::invalid_argument on every rank if the file cannot be read or holds NaN or infinity in any
/// rank's rows
void load_input(const Input& input, const JobPlan& plan, const HierarchicalCommunicators& communicators,
                CellRun& cell);

/// One rank and what it computes with.
struct RankFacts {
  int world_rank = 0;  ///< as MPI numbered it
  HostFacts host;
  int threads = 1;
  double peak_flops = 0.0;  ///< of these threads, measured
};

/// Collective over `world`, the ranks as MPI numbered them.
[[nodiscard]] RankFacts rank_facts(const JobConfig& config, const NodeLayout& layout,
                                   const MpiCommunicator& world);

[[nodiscard]] std::unique_ptr<AttentionKernel> make_kernel(const JobConfig& config, int threads);

}  // namespace hcp
