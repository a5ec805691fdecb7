#include "src/job/setup.hpp"

#include <omp.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include "kernels/cpu/cpu_isa.hpp"
#include "kernels/cpu/peak.hpp"
#include "kernels/cuda/back_end.hpp"
#include "src/job/agreement.hpp"
#include "src/job/config_validation.hpp"
#include "topology/mpi_collectives.hpp"

namespace hcp {
namespace {

/// The heads of the model that this rank's tensor-parallel share begins with.
struct FirstHeads {
  std::int64_t q = 0;
  std::int64_t kv = 0;
};

void fill_layer(const InputSource& source, const CellRun& cell, FirstHeads first, int layer) {
  const LayerTensors& tensors = cell.tensors(layer);
  source.fill(InputTensor::q, cell.shard(), first.q, layer, tensors.host_view(array_q));
  source.fill(InputTensor::k, cell.kv_shard(), first.kv, layer, tensors.host_view(array_k));
  source.fill(InputTensor::v, cell.kv_shard(), first.kv, layer, tensors.host_view(array_v));
  if (tensors.host_view(array_dout).data != nullptr) {
    source.fill(InputTensor::dout, cell.shard(), first.q, layer, tensors.host_view(array_dout));
  }
}

/// Reads out and forgets it: here a bad value is found by all ranks together, in the verification it would be
/// one rank's own error.
void check_out(const InputSource& source, const PositionSet& rows, FirstHeads first, const JobPlan& plan) {
  TensorView out{nullptr, DataType::fp32, count_of(rows), plan.query_heads(), plan.shape().v_channels};
  std::vector<std::byte> values(static_cast<std::size_t>(out.bytes()));
  out.data = values.data();
  source.fill(InputTensor::out, rows, first.q, 0, out);
}

/// What the user says, by option or environment, else the cores of a rank's share of the host.
/// @param bindings  of all ranks
/// @throws std::invalid_argument for more threads than any machine has cores
int threads_per_rank(const JobConfig& config, const HostFacts& facts, const NodeLayout& layout,
                     const MpiCommunicator& world, const std::vector<std::string>& bindings) {
  if (config.threads_per_rank) {
    return *config.threads_per_rank;
  }
  if (const char* asked = std::getenv("OMP_NUM_THREADS")) {
    if (omp_get_max_threads() > most_threads_per_rank) {
      throw std::invalid_argument{"OMP_NUM_THREADS is '" + std::string{asked} + "'; at most " +
                                  std::to_string(most_threads_per_rank) + " is possible"};
    }
    return omp_get_max_threads();
  }
  std::vector<std::string> on_host;
  const int host = layout.host_of_rank.at(static_cast<std::size_t>(world.rank()));
  for (std::size_t rank = 0; rank < bindings.size(); ++rank) {
    if (layout.host_of_rank[rank] == host) {
      on_host.push_back(bindings[rank]);
    }
  }
  return default_threads_per_rank(facts.cores, ranks_sharing_cpus(on_host, facts.binding));
}

/// One for all: tensors of one group lie in one kind of memory.
ChosenBackEnd agreed_back_end(const JobConfig& config, const MpiCommunicator& world) {
  const ChosenBackEnd mine = choose_back_end(config, find_devices);
  const bool everywhere =
      all_reduce(world, Reduction::min, mine.back_end == BackendChoice::cuda ? 1.0 : 0.0) > 0.0;
  if (mine.back_end == BackendChoice::cuda && !everywhere) {
    return {.back_end = BackendChoice::cpu, .reason = "not every rank has a device"};
  }
  return mine;
}

}  // namespace

void check_request(const JobConfig& config, const MpiCommunicator& world, const std::string& trace_path) {
  validate(config, world.size());
  static_cast<void>(choose_back_end(config, find_devices));
  if (world.rank() == 0) {
    check_trace_path(trace_path);
  }
}

Input open_input(const JobConfig& config) {
  if (!config.qkv) {
    return {shape_from_options(config), make_synthetic_input(config.seed)};
  }
  InputFile file = open_input_file(*config.qkv, config.seed);
  return {shape_from_file(config, file.shape), std::move(file.source)};
}

void load_input(const Input& input, const JobPlan& plan, const HierarchicalCommunicators& communicators,
                CellRun& cell, const std::function<void(int layer)>& progress) {
  const FirstHeads first{.q = communicators.coordinates().tp * plan.query_heads(),
                         .kv = communicators.coordinates().tp * plan.kv_heads()};
  for (int layer = 0; layer < plan.layers(); ++layer) {
    progress(layer);
    agree(communicators.world(), [&] { fill_layer(*input.source, cell, first, layer); });
  }
  agree(communicators.world(), [&] { cell.to_kernel(); });
  if (input.source->has_out()) {
    progress(0);
    agree(communicators.world(), [&] { check_out(*input.source, cell.shard(), first, plan); });
  }
}

NodeLayout find_nodes(const JobConfig& config, const MpiCommunicator& world) {
  NodeLayout hosts = discover_node_layout(world, 0);
  if (config.simulate_ranks_per_node.value_or(0) == 0) {
    return hosts;
  }
  return agree_on(world, [&] { return simulated_layout(hosts, *config.simulate_ranks_per_node); });
}

RankFacts rank_facts(const JobConfig& config, const NodeLayout& layout, const MpiCommunicator& world) {
  const HostFacts host = this_host();
  const std::vector<std::string> bindings = all_gather(world, host.binding);
  RankFacts facts = agree_on(world, [&] {
    return RankFacts{.world_rank = world.rank(),
                     .host = host,
                     .threads = threads_per_rank(config, host, layout, world, bindings)};
  });
  facts.back_end = agreed_back_end(config, world);
  if (facts.back_end.back_end == BackendChoice::cuda) {
    facts.device = choose_device(find_devices(), host.binding, layout, world);
  }
  facts.transport =
      choose_transport(config, facts.device, grid_sizes(config, world.size()).cp, layout, world, find_nccl);
  agree(world, [&] {
    if (facts.device) {
      facts.kernel = "cuda (" + facts.device->name + ")";
      facts.peak_flops = device_peak_flops(facts.device->index, config.dtype);
    } else {
      facts.kernel = config.attention_kernel == KernelChoice::reference
                         ? "reference (fp64)"
                         : "cpu (" + std::string{cpu_isa_name()} + ")";
      facts.peak_flops = measured_peak_flops(config.dtype, facts.threads);
    }
  });
  return facts;
}

void set_resolved(JobConfig& config, const GridSizes& sizes, const RankFacts& facts) {
  config.context_parallel_size = sizes.cp;
  config.threads_per_rank = facts.threads;
  if (config.cp_partition == Partition::striped) {
    config.stripe_size = config.stripe_size.value_or(default_stripe_size);
  }
  config.backend = facts.back_end.back_end;
  if (config.attention_kernel == KernelChoice::back_end) {
    config.attention_kernel = config.backend == BackendChoice::cuda ? KernelChoice::cuda : KernelChoice::cpu;
  }
  if (config.transport == TransportChoice::automatic) {
    config.transport = facts.transport.transport;
  }
}

BackEnd make_back_end(const JobConfig& config, int threads, const std::optional<RankDevice>& device) {
  switch (config.attention_kernel) {
    case KernelChoice::cuda:
      return make_cuda_back_end(device.value().index);
    case KernelChoice::reference:
      return make_host_back_end(make_reference_attention_kernel());
    default:
      return make_host_back_end(make_cpu_attention_kernel(threads));
  }
}

}  // namespace hcp
