#include "src/job/option_table.hpp"

#include <algorithm>
#include <utility>

#include "src/exchange/nearest_name.hpp"
#include "src/job/option_kinds.hpp"

namespace hcp {
namespace {

Option cp_comm_type_option() {
  return {.name = "cp-comm-type",
          .kind = OptionKind::list,
          .value_name = "SCHEME,...",
          .help =
              "one scheme for all layers, or one per layer: the algorithms p2p (ring), all_gather and a2a "
              "(head swap), one per level, joined by '+', inner level first; a single name is one level "
              "over all context-parallel ranks (default p2p+a2a)",
          .set =
              [](JobConfig& config, const std::string& text) {
                config.cp_comm_type.clear();
                for (const std::string& part : split_list(text)) {
                  config.cp_comm_type.push_back(parse_scheme_name(part));
                }
              },
          .get =
              [](const JobConfig& config) {
                std::vector<std::string> names;
                for (const std::vector<Algorithm>& algorithms : config.cp_comm_type) {
                  names.push_back(scheme_name(algorithms));
                }
                return join_list(names);
              }};
}

Option cp_partition_option() {
  ChoiceNames<Partition, all_partitions.size()> names;
  std::ranges::transform(all_partitions, names.begin(), [](Partition partition) {
    return std::pair{name_of(partition), partition};
  });
  return choice_option(
      "cp-partition", names, &JobConfig::cp_partition,
      "how tokens are dealt to ranks: two chunks per document, which balances causal masks; one run of all "
      "tokens; stripes in turn; or whole short documents and pieces of long ones by the keys that they see "
      "(default zigzag)");
}

Option timeout_option() {
  return {.name = "timeout",
          .kind = OptionKind::single,
          .value_name = "SECONDS",
          .help = "a step of the exchange that takes longer ends the job with exit status 3 (default 300)",
          .set = [](JobConfig& config,
                    const std::string& text) { config.timeout = parse_positive_seconds(text); },
          .get = [](const JobConfig& config) { return shortest_text(config.timeout); }};
}

Option softmax_scale_option() {
  return {.name = "softmax-scale",
          .kind = OptionKind::single,
          .value_name = "X",
          .help = "what scores are multiplied by (default 1 / sqrt(kv-channels))",
          .set = [](JobConfig& config,
                    const std::string& text) { config.softmax_scale = parse_positive_number(text); },
          .get = [](const JobConfig& config) -> std::optional<std::string> {
            return config.softmax_scale ? std::optional{shortest_text(*config.softmax_scale)} : std::nullopt;
          }};
}

Option attention_dropout_option() {
  return {.name = "attention-dropout",
          .kind = OptionKind::single,
          .value_name = "P",
          .help =
              "probability that an element of the softmax is dropped; which ones depends on seed, layer, "
              "document, head, query and key alone (default 0)",
          .set = [](JobConfig& config,
                    const std::string& text) { config.attention_dropout = parse_probability(text); },
          .get = [](const JobConfig& config) { return shortest_text(config.attention_dropout); }};
}

Option attention_mask_type_option() {
  Option option = choice_option("attention-mask-type", mask_type_names, &JobConfig::attention_mask_type,
                                "which keys of its document a query sees: ");
  for (const auto& [name, type] : mask_type_names) {
    option.help += std::string{name} + ", ";
  }
  option.help += "the last one read from mask-file (default no_mask)";
  option.value_name = "MASK";
  return option;
}

Option window_size_option() {
  return {
      .name = "window-size",
      .kind = OptionKind::list,
      .value_name = "LEFT,RIGHT",
      .help =
          "keys before and after its own place that a query sees, -1 for all; for sliding_window, and with "
          "RIGHT 0 or -1 for causal and causal_bottom_right",
      .set =
          [](JobConfig& config, const std::string& text) {
            const std::vector<std::string> parts = split_list(text);
            if (parts.size() != 2) {
              throw std::invalid_argument{std::to_string(parts.size()) +
                                          " numbers; a window is two, LEFT,RIGHT"};
            }
            config.window_size = Window{parse_whole_number(parts[0], -1), parse_whole_number(parts[1], -1)};
          },
      .get = [](const JobConfig& config) -> std::optional<std::string> {
        if (!config.window_size) {
          return std::nullopt;
        }
        return join_list(
            {std::to_string(config.window_size->left), std::to_string(config.window_size->right)});
      }};
}

OptionGroup problem_options() {
  return {
      "The problem",
      {number_option("seq-length", 1, &JobConfig::seq_length, "tokens of one row"),
       number_option("micro-batch-size", 1, &JobConfig::micro_batch_size,
                     "rows, packed one after the other (default 1)"),
       number_list_option("doc-lengths", 0, &JobConfig::doc_lengths,
                          "tokens of each document of one row, which see no other document (default one "
                          "document of seq-length)"),
       number_option("kv-seq-length", 1, &JobConfig::kv_seq_length,
                     "tokens of one row of keys and values, where they are others than those of the queries "
                     "(default seq-length)"),
       number_list_option(
           "kv-doc-lengths", 0, &JobConfig::kv_doc_lengths,
           "keys of each document of one row, as many documents as the queries have (default as "
           "for the queries)"),
       number_option("num-attention-heads", 1, &JobConfig::num_attention_heads, "query heads"),
       number_option("num-query-groups", 1, &JobConfig::num_query_groups,
                     "key and value heads (default as many as query heads)"),
       number_option("kv-channels", 1, &JobConfig::kv_channels,
                     "head dimension of queries and keys, 8 to 256 in steps of 8"),
       number_option("v-channels", 1, &JobConfig::v_channels,
                     "head dimension of values (default kv-channels)"),
       number_option("num-layers", 1, &JobConfig::num_layers, "attention layers in sequence (default 1)"),
       softmax_scale_option(),
       choice_option(
           "softmax-type", softmax_type_names, &JobConfig::softmax_type,
           "what the softmax sums over besides the keys: nothing, a logit 0, or a sink per head, which "
           "is learnt (default vanilla)"),
       flag_option("return-max-logit", &JobConfig::return_max_logit,
                   "print the largest scaled score of each head"),
       attention_dropout_option(),
       data_type_option("dtype", &JobConfig::dtype, "element type in memory (default fp32)"),
       file_option("qkv", &JobConfig::qkv,
                   "HDF5 file with q, k, v [tokens, heads, channels] and optionally doc_lengths, "
                   "kv_doc_lengths, out, dout; it says the sizes above (default synthetic values)"),
       number_option("seed", 0, &JobConfig::seed,
                     "of the synthetic values, the sinks and dropout (default 0)")}};
}

OptionGroup mask_options() {
  return {
      "The mask",
      {attention_mask_type_option(), window_size_option(),
       number_list_option("doc-valid-lengths", 0, &JobConfig::doc_valid_lengths,
                          "for padding and padding_causal: tokens of each document of one row before its "
                          "padding"),
       number_list_option("prefix-lengths", 0, &JobConfig::prefix_lengths,
                          "for prefix_lm: first keys of each document of one row that all of it sees"),
       number_option("mask-block-size", 1, &JobConfig::mask_block_size,
                     "for block_causal and block_diffusion: tokens of a block"),
       file_option("mask-file", &JobConfig::mask_file,
                   "for intervals: HDF5 file with the dataset intervals [queries of one row or of all rows, "
                   "4], two half-open key ranges each")}};
}

OptionGroup rank_options() {
  return {
      "The ranks",
      {number_option("context-parallel-size", 1, &JobConfig::context_parallel_size,
                     "ranks that share a sequence (default all ranks / tensor / pipeline; plan needs it)"),
       number_option("tensor-model-parallel-size", 1, &JobConfig::tensor_model_parallel_size,
                     "ranks that share the heads (default 1)"),
       number_option("pipeline-model-parallel-size", 1, &JobConfig::pipeline_model_parallel_size,
                     "ranks that share the layers of a model; each runs all layers given here (default 1)"),
       number_list_option("hierarchical-context-parallel-sizes", 1,
                          &JobConfig::hierarchical_context_parallel_sizes,
                          "ranks per level, inner first (default for two levels: context-parallel ranks per "
                          "node, nodes)"),
       cp_comm_type_option(), cp_partition_option(),
       number_option("stripe-size", 1, &JobConfig::stripe_size,
                     "tokens of a stripe of the striped partition (default 1)"),
       number_option("simulate-ranks-per-node", 0, &JobConfig::simulate_ranks_per_node,
                     "treat every N ranks as a node (default 0: the real nodes; plan: one node)"),
       data_type_option("grad-comm-dtype", &JobConfig::grad_comm_dtype,
                        "element type on the wire of gradients that are summed on arrival (default fp32)"),
       choice_option("backend", backend_choice_names, &JobConfig::backend,
                     "where tensors live and what moves them (default auto)"),
       choice_option("attention-kernel", kernel_choice_names, &JobConfig::attention_kernel,
                     "what computes attention on a rank; reference is fp64 and knows one context-parallel "
                     "rank only (default auto, the back end's own)"),
       choice_option(
           "transport", transport_choice_names, &JobConfig::transport,
           "what moves tensors: mpi those of hosts; nccl those of devices, one rank on each; staged "
           "those of devices through their hosts, also where ranks share a device (default auto: of "
           "devices nccl where it can, else staged)"),
       flag_option("serialize-levels", &JobConfig::serialize_levels,
                   "with nccl: messages of a level begin when those posted before on any level are done, "
                   "instead of in the order of NCCL's launches"),
       number_option("threads-per-rank", 1, &JobConfig::threads_per_rank,
                     "OpenMP threads (default OMP_NUM_THREADS, else the cores of a rank's share of the node)",
                     most_threads_per_rank)}};
}

OptionGroup measurement_options() {
  return {"The measurement",
          {choice_option("pass", pass_names, &JobConfig::pass, "what is timed (default fwdbwd)"),
           flag_option("comm-only", &JobConfig::comm_only, "the same messages without the arithmetic"),
           flag_option("compute-only", &JobConfig::compute_only, "the same arithmetic without the messages"),
           number_option("iterations", 1, &JobConfig::iterations, "timed repetitions (default 20)"),
           number_option("warmup", 0, &JobConfig::warmup, "repetitions before them (default 2)"),
           choice_option("verify", verify_mode_names, &JobConfig::verify,
                         "hold all values or a sample against the fp64 reference (default auto: full up to "
                         "2e11 FLOP, else sample)"),
           timeout_option(),
           file_option("trace", &JobConfig::trace,
                       "file to create (default hcp-<UTC time>-<job or process id>.h5)")}};
}

}  // namespace

const std::vector<OptionGroup>& option_table() {
  static const std::vector<OptionGroup> table{problem_options(), mask_options(), rank_options(),
                                              measurement_options()};
  return table;
}

const Option* find_option(const std::string& name) {
  for (const OptionGroup& group : option_table()) {
    for (const Option& option : group.options) {
      if (option.name == name) {
        return &option;
      }
    }
  }
  return nullptr;
}

std::string unknown_option_message(const std::string& name) {
  std::vector<std::string> names;
  for (const OptionGroup& group : option_table()) {
    for (const Option& option : group.options) {
      names.push_back(option.name);
    }
  }
  const std::string nearest = nearest_name(name, names);
  return "'" + name + "' is not an option" +
         (nearest.empty() ? "; hcp --help lists them" : "; did you mean " + nearest + "?");
}

}  // namespace hcp
