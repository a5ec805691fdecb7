#include "src/job/config_validation.hpp"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <limits>
#include <stdexcept>

#include "kernels/buffer.hpp"
#include "src/job/mask_options.hpp"
#include "src/job/problem_shape.hpp"

namespace hcp {
namespace {

/// tensor · context · pipeline ranks, "--tensor-model-parallel-size 2 · ..." in the message.
int ranks_of_one_replica(const JobConfig& config, int cp_size) {
  const auto product = std::int64_t{config.tensor_model_parallel_size} * config.pipeline_model_parallel_size;
  constexpr std::int64_t most = std::numeric_limits<int>::max();
  if (product > most / cp_size) {
    throw std::invalid_argument{
        "tensor, context and pipeline parallel sizes " + std::to_string(config.tensor_model_parallel_size) +
        ", " + std::to_string(cp_size) + ", " + std::to_string(config.pipeline_model_parallel_size) +
        " multiply to more than " + std::to_string(most) + " ranks"};
  }
  return static_cast<int>(product * cp_size);
}

void check_schemes(const JobConfig& config, int cp_size) {
  const std::size_t schemes = config.cp_comm_type.size();
  if (schemes != 1 && schemes != static_cast<std::size_t>(config.num_layers)) {
    throw std::invalid_argument{"--cp-comm-type has " + std::to_string(schemes) +
                                " schemes, but --num-layers is " + std::to_string(config.num_layers) +
                                "; give one scheme, or one per layer"};
  }
  for (const std::vector<Algorithm>& algorithms : config.cp_comm_type) {
    check_scheme(algorithms, cp_size, config.hierarchical_context_parallel_sizes);
  }
}

void check_partition(const JobConfig& config) {
  if (config.stripe_size && config.cp_partition != Partition::striped) {
    throw std::invalid_argument{
        "--stripe-size " + std::to_string(*config.stripe_size) + " means nothing with --cp-partition " +
        std::string{name_of(config.cp_partition)} + "; leave it out, or use --cp-partition striped"};
  }
}

void check_kernel(const JobConfig& config, int cp_size) {
  if (config.attention_kernel == KernelChoice::reference && cp_size > 1) {
    throw std::invalid_argument{
        "--attention-kernel reference knows no context parallelism, but the "
        "context-parallel size is " +
        std::to_string(cp_size) + "; use cpu, or --context-parallel-size 1"};
  }
}

/// What of the options lets tensors lie in one kind of memory, as the user would write it; empty if nothing.
std::string option_for_memory_of(MemorySpace space, const JobConfig& config) {
  const bool host = space == MemorySpace::host;
  if (config.backend == (host ? BackendChoice::cpu : BackendChoice::cuda)) {
    return "--backend " + std::string{name_in(backend_choice_names, config.backend)};
  }
  const KernelChoice kernel = config.attention_kernel;
  if (host ? kernel == KernelChoice::cpu || kernel == KernelChoice::reference
           : kernel == KernelChoice::cuda) {
    return "--attention-kernel " + std::string{name_in(kernel_choice_names, kernel)};
  }
  return {};
}

void check_transport(const JobConfig& config) {
  const std::string transport{name_in(transport_choice_names, config.transport)};
  if (config.transport != TransportChoice::automatic) {
    const bool host = config.transport == TransportChoice::mpi;
    const std::string other = option_for_memory_of(host ? MemorySpace::device : MemorySpace::host, config);
    if (!other.empty()) {
      throw std::invalid_argument{"--transport " + transport + " moves the memory of " +
                                  (host ? "hosts" : "devices") + ", but with " + other +
                                  " tensors lie in that of " + (host ? "devices" : "hosts") +
                                  "; leave one of them out"};
    }
  }
  if (config.serialize_levels && config.transport != TransportChoice::nccl) {
    throw std::invalid_argument{"--serialize-levels is about NCCL, but --transport is " + transport +
                                "; leave it out, or use --transport nccl"};
  }
}

void check_measurement(const JobConfig& config) {
  if (config.comm_only && config.compute_only) {
    throw std::invalid_argument{"--comm-only and --compute-only exclude each other; give one of them"};
  }
  const bool verifies = config.verify == VerifyMode::full || config.verify == VerifyMode::sample;
  if (verifies && (config.comm_only || config.compute_only)) {
    throw std::invalid_argument{
        "--verify " + std::string{name_in(verify_mode_names, config.verify)} + " needs the whole job, but " +
        (config.comm_only ? "--comm-only" : "--compute-only") + " leaves out half of it; use --verify off"};
  }
  if (config.return_max_logit && (config.comm_only || config.compute_only)) {
    throw std::invalid_argument{std::string{"--return-max-logit needs the whole job, but "} +
                                (config.comm_only ? "--comm-only" : "--compute-only") +
                                " leaves out half of it; leave one of them out"};
  }
  if (config.qkv && config.micro_batch_size != 1) {
    throw std::invalid_argument{"--micro-batch-size " + std::to_string(config.micro_batch_size) +
                                ": an input file (--qkv) is one row; leave the option out"};
  }
}

}  // namespace

GridSizes grid_sizes(const JobConfig& config, int world_size) {
  const int replica_without_cp = ranks_of_one_replica(config, 1);
  if (!config.context_parallel_size && world_size % replica_without_cp != 0) {
    throw std::invalid_argument{std::to_string(world_size) +
                                " ranks are not a multiple of tensor x pipeline = " +
                                std::to_string(config.tensor_model_parallel_size) + " x " +
                                std::to_string(config.pipeline_model_parallel_size)};
  }
  const int cp_size = config.context_parallel_size.value_or(world_size / replica_without_cp);
  const int replica = ranks_of_one_replica(config, cp_size);
  if (world_size % replica != 0) {
    throw std::invalid_argument{
        std::to_string(world_size) + " ranks are not a multiple of tensor x context x pipeline = " +
        std::to_string(config.tensor_model_parallel_size) + " x " + std::to_string(cp_size) + " x " +
        std::to_string(config.pipeline_model_parallel_size) + " = " + std::to_string(replica) +
        "; start that many, or a multiple of it"};
  }
  return {.tp = config.tensor_model_parallel_size,
          .cp = cp_size,
          .dp = world_size / replica,
          .pp = config.pipeline_model_parallel_size};
}

int planned_world_size(const JobConfig& config) {
  if (!config.context_parallel_size) {
    throw std::invalid_argument{
        "plan needs --context-parallel-size: without MPI there are no ranks to count"};
  }
  return ranks_of_one_replica(config, *config.context_parallel_size);
}

void validate(const JobConfig& config, int world_size) {
  const int cp_size = grid_sizes(config, world_size).cp;
  check_schemes(config, cp_size);
  check_partition(config);
  check_kernel(config, cp_size);
  check_transport(config);
  check_measurement(config);
  check_mask_options(config);
  if (!config.qkv) {
    check_head_swaps(config, cp_size, shape_from_options(config).query_heads);
  }
}

void check_head_swaps(const JobConfig& config, int cp_size, std::int64_t query_heads) {
  const std::vector<int>& sizes = config.hierarchical_context_parallel_sizes;
  for (const std::vector<Algorithm>& algorithms : config.cp_comm_type) {
    if (algorithms.size() == 1 || !sizes.empty()) {
      const ResolvedScheme scheme = resolve_scheme(algorithms, cp_size, sizes, std::nullopt);
      check_query_heads(scheme.effective, query_heads / config.tensor_model_parallel_size);
    }
  }
}

void check_trace_path(const std::string& path) {
  const std::filesystem::path file{path};
  std::error_code ignored;
  if (std::filesystem::symlink_status(file, ignored).type() != std::filesystem::file_type::not_found) {
    throw std::invalid_argument{"--trace " + path + " exists, and nothing is overwritten; name another file"};
  }
  const std::filesystem::path directory = file.has_parent_path() ? file.parent_path() : ".";
  if (!std::filesystem::is_directory(directory, ignored)) {
    throw std::invalid_argument{"--trace " + path + ": there is no directory " + directory.string()};
  }
  if (access(directory.c_str(), W_OK | X_OK) != 0) {
    throw std::invalid_argument{"--trace " + path + ": the directory " + directory.string() +
                                " cannot be written to; name a file elsewhere"};
  }
}

std::string default_trace_path() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  if (gmtime_r(&now, &utc) == nullptr) {
    throw std::runtime_error{"the time of day cannot be told in UTC"};
  }
  std::array<char, 32> time{};
  const std::size_t length = std::strftime(time.data(), time.size(), "%Y%m%dT%H%M%SZ", &utc);
  const char* job = std::getenv("SLURM_JOB_ID");
  return "hcp-" + std::string{time.data(), length} + "-" + (job != nullptr ? job : std::to_string(getpid())) +
         ".h5";
}

}  // namespace hcp
