/// What a user asked for: every option with its default. command_line.hpp fills it, config_validation.hpp
/// checks it.
///
/// Options carry Megatron's names (`--seq-length` is seq_length). An empty std::optional or vector means that
/// the user did not say; what then holds is decided where the missing fact is known: the number of ranks, the
/// sizes in an input file, the cores of the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/data_type.hpp"
#include "src/exchange/plan_memory.hpp"
#include "src/exchange/scheme.hpp"
#include "src/job/option_values.hpp"
#include "topology/sequence_partition.hpp"

namespace hcp {

enum class MaskType : std::uint8_t { no_mask, causal };
inline constexpr ChoiceNames<MaskType, 2> mask_type_names{
    {{"no_mask", MaskType::no_mask}, {"causal", MaskType::causal}}};

enum class KernelChoice : std::uint8_t {
  back_end,  ///< the back end's own
  cpu,
  cuda,
  reference,  ///< fp64 arithmetic, one context-parallel rank only
};
inline constexpr ChoiceNames<KernelChoice, 4> kernel_choice_names{{{"auto", KernelChoice::back_end},
                                                                   {"cpu", KernelChoice::cpu},
                                                                   {"cuda", KernelChoice::cuda},
                                                                   {"reference", KernelChoice::reference}}};

enum class BackendChoice : std::uint8_t { automatic, cpu, cuda };
inline constexpr ChoiceNames<BackendChoice, 3> backend_choice_names{
    {{"auto", BackendChoice::automatic}, {"cpu", BackendChoice::cpu}, {"cuda", BackendChoice::cuda}}};

/// What is timed. Backward alone still needs forward's results: forward then runs untimed first.
inline constexpr ChoiceNames<PassSelection, 3> pass_names{
    {{"fwd", PassSelection::forward}, {"bwd", PassSelection::backward}, {"fwdbwd", PassSelection::both}}};

enum class VerifyMode : std::uint8_t {
  automatic,  ///< full up to 2e11 FLOP of reference arithmetic, above it sample
  full,
  sample,
  off,
};
inline constexpr ChoiceNames<VerifyMode, 4> verify_mode_names{{{"auto", VerifyMode::automatic},
                                                               {"full", VerifyMode::full},
                                                               {"sample", VerifyMode::sample},
                                                               {"off", VerifyMode::off}}};

/// More is a typing error that would drown the machine: no node of today has so many cores.
inline constexpr int most_threads_per_rank = 1024;

struct JobConfig {
  // The problem
  std::optional<std::int64_t> seq_length;  ///< tokens of one row
  std::int64_t micro_batch_size = 1;       ///< rows packed one after the other
  std::vector<std::int64_t> doc_lengths;   ///< of one row; empty: one document
  std::optional<std::int64_t> num_attention_heads;
  std::optional<std::int64_t> num_query_groups;  ///< KV heads; empty: as many as query heads
  std::optional<std::int64_t> kv_channels;       ///< head dimension of q and k
  std::optional<std::int64_t> v_channels;        ///< head dimension of v; empty: kv_channels
  int num_layers = 1;                            ///< attention layers in sequence
  MaskType attention_mask_type = MaskType::no_mask;
  DataType dtype = DataType::fp32;  ///< of q, k, v, out and their gradients in memory
  std::optional<std::string> qkv;   ///< HDF5 file with the input; empty: synthetic values
  std::uint64_t seed = 0;           ///< of the synthetic values

  // The ranks
  std::optional<int> context_parallel_size;  ///< empty: world / (tensor · pipeline)
  int tensor_model_parallel_size = 1;
  int pipeline_model_parallel_size = 1;
  std::vector<int> hierarchical_context_parallel_sizes;  ///< inner first
  /// [layers], or one for all of them.
  std::vector<std::vector<Algorithm>> cp_comm_type{{Algorithm::p2p, Algorithm::a2a}};
  Partition cp_partition = Partition::zigzag;
  std::optional<int> simulate_ranks_per_node;
  DataType grad_comm_dtype = DataType::fp32;  ///< of gradients that the receiver still sums
  BackendChoice backend = BackendChoice::automatic;
  KernelChoice attention_kernel = KernelChoice::back_end;
  std::optional<int> threads_per_rank;

  // The measurement
  PassSelection pass = PassSelection::both;
  bool comm_only = false;     ///< the same messages, no arithmetic
  bool compute_only = false;  ///< the same arithmetic, no messages
  int iterations = 20;
  int warmup = 2;
  VerifyMode verify = VerifyMode::automatic;
  double timeout = 300;              ///< s, of one step
  std::optional<std::string> trace;  ///< file to create

  std::string deck;          ///< where options were read from first; empty: nowhere
  std::string command_line;  ///< as given

  /// The algorithms of layer `layer`, counted from 0.
  [[nodiscard]] const std::vector<Algorithm>& scheme_of_layer(int layer) const {
    return cp_comm_type.at(cp_comm_type.size() == 1 ? 0 : static_cast<std::size_t>(layer));
  }
};

/// Every option that has a value, with it, in the order of the help text. Giving these back to the program
/// makes the same config.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> describe(const JobConfig& config);

}  // namespace hcp
