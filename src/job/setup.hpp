/// The steps of a run before its first message: input, threads, trace, and the rows that describe them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "src/job/back_end.hpp"
#include "src/job/cell_run.hpp"
#include "src/job/input.hpp"
#include "src/job/job_config.hpp"
#include "src/job/job_plan.hpp"
#include "src/job/rank_device.hpp"
#include "src/job/transports.hpp"
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
/// @throws std::invalid_argument as validate(), choose_back_end() and check_trace_path()
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
  ChosenBackEnd back_end{};            ///< the same on all ranks
  std::optional<RankDevice> device{};  ///< that this rank computes on; with CUDA
  ChosenTransport transport{};         ///< the same on all ranks
  std::string kernel{};                ///< "cpu (avx512)", "cuda (NVIDIA H200)"
  double peak_flops = 0.0;             ///< of these threads, measured, or of the device, as device_peak_flops
};

/// Collective over `world`, the ranks as MPI numbered them.
/// @throws InputError if OMP_NUM_THREADS or HCP_CPU_ISA ask for what there is not, or as choose_transport
[[nodiscard]] RankFacts rank_facts(const JobConfig& config, const NodeLayout& layout,
                                   const MpiCommunicator& world);

/// Puts what was decided for the user into the options, so that plan and trace know it. The transport stays
/// as it is where nothing is moved.
void set_resolved(JobConfig& config, const GridSizes& sizes, const RankFacts& facts);

/// @param config  resolved
/// @param device  with CUDA
/// @throws std::invalid_argument if HCP_CPU_ISA names what the processor lacks
/// @throws std::runtime_error if the device does not answer
[[nodiscard]] BackEnd make_back_end(const JobConfig& config, int threads,
                                    const std::optional<RankDevice>& device = {});

/// Fills q, k, v and dout of every layer, and checks out where the input has it. Collective over the world.
/// @param progress  called with the layer before each step that may take long
/// @throws InputError if the file cannot be read or holds NaN or infinity in any rank's rows
void load_input(const Input& input, const JobPlan& plan, const HierarchicalCommunicators& communicators,
                CellRun& cell, const std::function<void(int layer)>& progress);

}  // namespace hcp
