#include "src/job/setup.hpp"

#include <omp.h>

#include <cstdlib>

#include "kernels/cpu/peak.hpp"
#include "src/job/agreement.hpp"
#include "topology/mpi_collectives.hpp"

namespace hcp {
namespace {

void fill_tensors(const Input& input, const JobPlan& plan, const HierarchicalCommunicators& communicators,
                  CellRun& cell) {
  const PositionSet& rows = cell.shard();
  const std::int64_t first_q = communicators.coordinates().tp * plan.query_heads();
  const std::int64_t first_kv = communicators.coordinates().tp * plan.kv_heads();
  for (int layer = 0; layer < plan.layers(); ++layer) {
    const LayerTensors& tensors = cell.tensors(layer);
    input.source->fill(InputTensor::q, rows, first_q, layer, tensors.view(array_q));
    input.source->fill(InputTensor::k, rows, first_kv, layer, tensors.view(array_k));
    input.source->fill(InputTensor::v, rows, first_kv, layer, tensors.view(array_v));
    if (tensors.view(array_dout).data != nullptr) {
      input.source->fill(InputTensor::dout, rows, first_q, layer, tensors.view(array_dout));
    }
  }
  if (input.source->has_out()) {
    // Here a bad value is found by all ranks together; in the verification it would be one rank's own error.
    TensorView out{nullptr, DataType::fp32, count_of(rows), plan.query_heads(), plan.shape().v_channels};
    std::vector<std::byte> values(static_cast<std::size_t>(out.bytes()));
    out.data = values.data();
    input.source->fill(InputTensor::out, rows, first_q, 0, out);
  }
}

int threads_per_rank(const JobConfig& config, const HostFacts& facts, const NodeLayout& layout,
                     const MpiCommunicator& world) {
  const std::vector<std::string> bindings = all_gather(world, facts.binding);
  if (config.threads_per_rank) {
    return *config.threads_per_rank;
  }
  if (std::getenv("OMP_NUM_THREADS") != nullptr) {
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

}  // namespace

Input open_input(const JobConfig& config) {
  if (!config.qkv) {
    return {shape_from_options(config), make_synthetic_input(config.seed)};
  }
  InputFile file = open_input_file(*config.qkv, config.seed);
  return {shape_from_file(config, file.shape), std::move(file.source)};
}

void load_input(const Input& input, const JobPlan& plan, const HierarchicalCommunicators& communicators,
                CellRun& cell) {
  agree(communicators.world(), [&] { fill_tensors(input, plan, communicators, cell); });
}

RankFacts rank_facts(const JobConfig& config, const NodeLayout& layout, const MpiCommunicator& world) {
  const HostFacts host = this_host();
  const int threads = threads_per_rank(config, host, layout, world);
  return {world.rank(), host, threads, measured_peak_flops(config.dtype, threads)};
}

std::unique_ptr<AttentionKernel> make_kernel(const JobConfig& config, int threads) {
  return config.attention_kernel == KernelChoice::reference ? make_reference_attention_kernel()
                                                            : make_cpu_attention_kernel(threads);
}

}  // namespace hcp
