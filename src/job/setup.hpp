/// The steps of a run before its first message: input, threads, trace, and the rows that describe them.
#pragma once

#include <functional>
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

/// What can be refused without opening a file. The trace is rank 0's business alone.
/// @throws std::invalid_argument as validate(), check_back_end() and check_trace_path()
void check_request(const JobConfig& config, const MpiCommunicator& world, const std::string& trace_path);

/// Reads the sizes of an input file, or takes those of the options.
/// @throws std::invalid_argument for a file or sizes that cannot be used
[[nodiscard]] Input open_input(const JobConfig& config);

/// The hosts as nodes, or what the user wants to be taken for nodes. Collective over `world`.
/// @throws InputError if the hosts cannot be cut into such nodes
[[nodiscard]] NodeLayout find_nodes(const JobConfig& config, const MpiCommunicator& world);

/// One rank and what it computes with.
struct RankFacts {
  int world_rank = 0;  ///< as MPI numbered it
  HostFacts host;
  int threads = 1;
  double peak_flops = 0.0;  ///< of these threads, measured
  std::string back_end;     ///< as describe_back_end
};

/// Collective over `world`, the ranks as MPI numbered them.
/// @throws InputError if OMP_NUM_THREADS or HCP_CPU_ISA ask for what there is not
[[nodiscard]] RankFacts rank_facts(const JobConfig& config, const NodeLayout& layout,
                                   const MpiCommunicator& world);

/// @throws std::invalid_argument if HCP_CPU_ISA names what the processor lacks
/// Puts what was decided for the user into the options, so that the trace tells it.
void set_resolved(JobConfig& config, const JobPlan& plan, const RankFacts& facts);

[[nodiscard]] std::unique_ptr<AttentionKernel> make_kernel(const JobConfig& config, int threads);

/// Fills q, k, v and dout of every layer, and checks out where the input has it. Collective over the world.
/// @param progress  called with the layer before each step that may take long
/// @throws InputError if the file cannot be read or holds NaN or infinity in any rank's rows
void load_input(const Input& input, const JobPlan& plan, const HierarchicalCommunicators& communicators,
                CellRun& cell, const std::function<void(int layer)>& progress);

}  // namespace hcp
