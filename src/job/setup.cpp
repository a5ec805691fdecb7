#include "src/job/setup.hpp"

#include <omp.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include "src/job/build_info.hpp"
#include "src/job/config_validation.hpp"
#include "topology/level_digits.hpp"
#include "topology/mpi_collectives.hpp"

extern "C" char** environ;  // NOLINT: POSIX names it, no header declares it

namespace hcp {
namespace {

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

/// The variables that decide how libraries behave, as JSON.
std::string relevant_environment() {
  constexpr std::array<std::string_view, 8> prefixes{"OMPI_", "UCX_",  "NCCL_", "SLURM_",
                                                     "OMP_",  "CUDA_", "HCP_",  "PMIX_"};
  NamedTexts found;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text{*entry};
    const std::size_t equals = text.find('=');
    for (const std::string_view prefix : prefixes) {
      if (text.starts_with(prefix)) {
        found.emplace_back(std::string{text.substr(0, equals)}, std::string{text.substr(equals + 1)});
      }
    }
  }
  return to_json(found);
}

/// One entry per layer, or one for all if they are the same.
template <typename Text>
std::string per_layer(const JobPlan& plan, const Text& text) {
  if (plan.schemes().size() == 1) {
    return text(plan.schemes().front().effective);
  }
  std::string joined;
  for (int layer = 0; layer < plan.layers(); ++layer) {
    joined += (layer == 0 ? "" : ";") +
              text(plan.schemes()[static_cast<std::size_t>(plan.scheme_of_layer(layer))].effective);
  }
  return joined;
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

std::unique_ptr<AttentionKernel> make_kernel(const JobConfig& config, int threads) {
  return config.attention_kernel == KernelChoice::reference ? make_reference_attention_kernel()
                                                            : make_cpu_attention_kernel(threads);
}

TraceFile create_trace(const JobConfig& config, const std::string& path) {
  NamedTexts provenance = build_info();
  provenance.emplace_back("command_line", config.command_line);
  provenance.emplace_back("deck", config.deck);
  provenance.emplace_back("host", this_host().host_name);
  provenance.emplace_back("start_time", utc_now());
  provenance.emplace_back("environment", relevant_environment());
  return TraceFile::create(path, provenance);
}

RankRow rank_row(const JobPlan& plan, const HierarchicalCommunicators& communicators, const HostFacts& facts,
                 int world_rank) {
  const auto w = static_cast<std::size_t>(world_rank);
  return {.rank = communicators.grid_rank(),
          .node = plan.layout().node_of_rank.at(w),
          .local_rank = plan.layout().local_rank_of_rank.at(w),
          .world_rank = world_rank,
          .host = FixedString<64>::truncated(facts.host_name),
          .device = "cpu",
          .binding = FixedString<128>::truncated(facts.binding)};
}

CellRow cell_row(const JobConfig& config, const JobPlan& plan, int number) {
  NamedTexts options = describe(config);
  return {.cell = number,
          .tokens = plan.shape().tokens(),
          .scheme = FixedString<256>::truncated(per_layer(plan, [](const Scheme& s) { return s.name(); })),
          .sizes = FixedString<256>::truncated(per_layer(plan, [](const Scheme& s) { return s.sizes(); })),
          .mask = name_in(mask_type_names, config.attention_mask_type),
          .dtype = name_of(config.dtype),
          .pass = name_in(pass_names, config.pass),
          .options = to_json(options)};
}

PlacementRow placement_row(const JobPlan& plan, const HierarchicalCommunicators& communicators,
                           const CellRun& cell, int number) {
  const GridCoordinates& at = communicators.coordinates();
  std::vector<int> sizes;
  for (const Level& level : plan.schemes().front().effective.levels) {
    sizes.push_back(level.size);
  }
  std::string digits;
  for (const int digit : level_digits(at.cp, sizes)) {
    digits += (digits.empty() ? "" : ",") + std::to_string(digit);
  }
  return {.cell = number,
          .rank = communicators.grid_rank(),
          .tp = at.tp,
          .cp = at.cp,
          .dp = at.dp,
          .pp = at.pp,
          .level_coordinates = FixedString<32>::truncated(digits),
          .tokens = count_of(cell.shard())};
}

std::string rank_line(const RankRow& rank, const PlacementRow& placement, const std::string& node) {
  std::array<char, 256> text{};
  std::snprintf(text.data(), text.size(), "%4d  %4d  %5d  %2d  %2d  %2d  %2d  %7lld  ", rank.rank, rank.node,
                rank.local_rank, placement.tp, placement.cp, placement.dp, placement.pp,
                static_cast<long long>(placement.tokens));
  return text.data() + node + ", cpus " + std::string{rank.binding.view()};
}

}  // namespace hcp
