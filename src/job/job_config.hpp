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

#include "kernels/attention_mask.hpp"
#include "kernels/data_type.hpp"
#include "src/exchange/plan_memory.hpp"
#include "src/exchange/scheme.hpp"
#include "src/job/option_values.hpp"
#include "topology/sequence_partition.hpp"

namespace hcp {

/// Which keys of its document a query sees; each is a factory of AttentionMask.
enum class MaskType : std::uint8_t {
  no_mask,
  causal,
  causal_bottom_right,
  sliding_window,
  padding,
  padding_causal,
  prefix_lm,
  block_causal,
  block_diffusion,
  intervals,  ///< read from a file
};
inline constexpr ChoiceNames<MaskType, 10> mask_type_names{
    {{"no_mask", MaskType::no_mask},
     {"causal", MaskType::causal},
     {"causal_bottom_right", MaskType::causal_bottom_right},
     {"sliding_window", MaskType::sliding_window},
     {"padding", MaskType::padding},
     {"padding_causal", MaskType::padding_causal},
     {"prefix_lm", MaskType::prefix_lm},
     {"block_causal", MaskType::block_causal},
     {"block_diffusion", MaskType::block_diffusion},
     {"intervals", MaskType::intervals}}};

/// What the softmax of a query sums over besides the keys it sees: one more logit per head, with the value 0.
enum class SoftmaxType : std::uint8_t {
  vanilla,     ///< nothing
  off_by_one,  ///< the logit 0
  learnable,   ///< a sink, with its gradient
};
inline constexpr ChoiceNames<SoftmaxType, 3> softmax_type_names{{{"vanilla", SoftmaxType::vanilla},
                                                                 {"off-by-one", SoftmaxType::off_by_one},
                                                                 {"learnable", SoftmaxType::learnable}}};

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

/// What moves tensors between ranks; it knows one kind of memory.
enum class TransportChoice : std::uint8_t {
  automatic,
  mpi,     ///< the memory of hosts
  nccl,    ///< of devices, of which no two ranks share one
  staged,  ///< of devices, through the memory of their hosts and MPI
};
inline constexpr ChoiceNames<TransportChoice, 4> transport_choice_names{
    {{"auto", TransportChoice::automatic},
     {"mpi", TransportChoice::mpi},
     {"nccl", TransportChoice::nccl},
     {"staged", TransportChoice::staged}}};

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

inline constexpr std::int64_t default_stripe_size = 1;

struct JobConfig {
  // The problem
  std::optional<std::int64_t> seq_length;     ///< tokens of one row
  std::int64_t micro_batch_size = 1;          ///< rows packed one after the other
  std::vector<std::int64_t> doc_lengths;      ///< of one row; empty: one document
  std::optional<std::int64_t> kv_seq_length;  ///< keys of one row; empty: the queries' tokens
  std::vector<std::int64_t> kv_doc_lengths;   ///< of one row; empty: as for queries
  std::optional<std::int64_t> num_attention_heads;
  std::optional<std::int64_t> num_query_groups;  ///< KV heads; empty: as many as query heads
  std::optional<std::int64_t> kv_channels;       ///< head dimension of q and k
  std::optional<std::int64_t> v_channels;        ///< head dimension of v; empty: kv_channels
  int num_layers = 1;                            ///< attention layers in sequence
  std::optional<float> softmax_scale;            ///< empty: 1 / sqrt(kv_channels)
  SoftmaxType softmax_type = SoftmaxType::vanilla;
  bool return_max_logit = false;    ///< the largest scaled score of each head
  double attention_dropout = 0;     ///< probability
  DataType dtype = DataType::fp32;  ///< of q, k, v, out and their gradients in memory
  std::optional<std::string> qkv;   ///< HDF5 file with the input; empty: synthetic values
  std::uint64_t seed = 0;           ///< of the synthetic values, the sinks and dropout

  // The mask
  MaskType attention_mask_type = MaskType::no_mask;
  std::optional<Window> window_size;
  std::vector<std::int64_t> doc_valid_lengths;  ///< of each document of one row, the rest is padding
  std::vector<std::int64_t> prefix_lengths;     ///< of each document of one row
  std::optional<std::int64_t> mask_block_size;
  std::optional<std::string> mask_file;  ///< HDF5 file with the dataset intervals

  // The ranks
  std::optional<int> context_parallel_size;  ///< empty: world / (tensor · pipeline)
  int tensor_model_parallel_size = 1;
  int pipeline_model_parallel_size = 1;
  std::vector<int> hierarchical_context_parallel_sizes;  ///< inner first
  /// [layers], or one for all of them.
  std::vector<std::vector<Algorithm>> cp_comm_type{{Algorithm::p2p, Algorithm::a2a}};
  Partition cp_partition = Partition::zigzag;
  std::optional<std::int64_t> stripe_size;  ///< tokens, of the striped partition; empty: the default
  std::optional<int> simulate_ranks_per_node;
  DataType grad_comm_dtype = DataType::fp32;  ///< of gradients that the receiver still sums
  BackendChoice backend = BackendChoice::automatic;
  KernelChoice attention_kernel = KernelChoice::back_end;
  TransportChoice transport = TransportChoice::automatic;
  bool serialize_levels = false;  ///< NCCL's sets of messages follow each other, whatever their level
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

/// "striped partition, stripe size 4".
[[nodiscard]] std::string describe_partition(const JobConfig& config);

}  // namespace hcp
