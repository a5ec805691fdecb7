#include "src/job/option_table.hpp"

#include <charconv>
#include <limits>

#include "src/exchange/nearest_name.hpp"

namespace hcp {
namespace {

template <typename Member>
struct NumberIn {
  using Type = Member;
};
template <typename Number>
struct NumberIn<std::optional<Number>> {
  using Type = Number;
};

template <typename Value>
std::optional<std::string> number_text(const std::optional<Value>& value) {
  return value ? std::optional{std::to_string(*value)} : std::nullopt;
}

/// The largest number that fits in a member and in 64 signed bits.
template <typename Member>
constexpr std::int64_t largest_of = sizeof(typename NumberIn<Member>::Type) < sizeof(std::int64_t)
                                        ? std::int64_t{std::numeric_limits<int>::max()}
                                        : std::numeric_limits<std::int64_t>::max();

/// A whole number from `lowest` to `highest`, kept in a member that may be optional.
template <typename Member>
Option number_option(std::string name, std::int64_t lowest, Member JobConfig::*member, std::string help,
                     std::int64_t highest = largest_of<Member>) {
  using Number = typename NumberIn<Member>::Type;
  return {.name = std::move(name),
          .kind = OptionKind::single,
          .value_name = "N",
          .help = std::move(help),
          .set =
              [=](JobConfig& config, const std::string& text) {
                config.*member = static_cast<Number>(parse_whole_number(text, lowest, highest));
              },
          .get = [=](const JobConfig& config) { return number_text(std::optional<Number>{config.*member}); }};
}

template <typename Choice, std::size_t Count>
Option choice_option(std::string name, const ChoiceNames<Choice, Count>& names, Choice JobConfig::*member,
                     std::string help) {
  std::string value_name;
  for (const auto& [choice_name, choice] : names) {
    value_name += (value_name.empty() ? "" : "|") + std::string{choice_name};
  }
  return {
      .name = std::move(name),
      .kind = OptionKind::single,
      .value_name = std::move(value_name),
      .help = std::move(help),
      .set = [=](JobConfig& config, const std::string& text) { config.*member = parse_choice(text, names); },
      .get = [=](const JobConfig& config) { return std::string{name_in(names, config.*member)}; }};
}

Option data_type_option(std::string name, DataType JobConfig::*member, std::string help) {
  return choice_option(std::move(name),
                       ChoiceNames<DataType, 3>{
                           {{"fp32", DataType::fp32}, {"bf16", DataType::bf16}, {"fp16", DataType::fp16}}},
                       member, std::move(help));
}

/// Whole numbers of at least `lowest`.
template <typename Number>
Option number_list_option(std::string name, std::int64_t lowest, std::vector<Number> JobConfig::*member,
                          std::string help) {
  return {.name = std::move(name),
          .kind = OptionKind::list,
          .value_name = "N,N,...",
          .help = std::move(help),
          .set =
              [=](JobConfig& config, const std::string& text) {
                (config.*member).clear();
                for (const std::string& part : split_list(text)) {
                  const std::int64_t value =
                      parse_whole_number(part, lowest, std::int64_t{std::numeric_limits<Number>::max()});
                  (config.*member).push_back(static_cast<Number>(value));
                }
              },
          .get = [=](const JobConfig& config) -> std::optional<std::string> {
            std::vector<std::string> parts;
            for (const Number value : config.*member) {
              parts.push_back(std::to_string(value));
            }
            return parts.empty() ? std::nullopt : std::optional{join_list(parts)};
          }};
}

Option flag_option(std::string name, bool JobConfig::*member, std::string help) {
  return {.name = std::move(name),
          .kind = OptionKind::flag,
          .value_name = "",
          .help = std::move(help),
          .set = [=](JobConfig& config, const std::string& text) { config.*member = parse_flag(text); },
          .get = [=](const JobConfig& config) { return std::string{config.*member ? "true" : "false"}; }};
}

Option file_option(std::string name, std::optional<std::string> JobConfig::*member, std::string help) {
  return {.name = std::move(name),
          .kind = OptionKind::single,
          .value_name = "FILE",
          .help = std::move(help),
          .set =
              [=](JobConfig& config, const std::string& text) {
                if (text.empty()) {
                  throw std::invalid_argument{"the name of a file is missing"};
                }
                config.*member = text;
              },
          .get = [=](const JobConfig& config) { return config.*member; }};
}

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
  return choice_option(
      "cp-partition",
      ChoiceNames<Partition, 2>{{{"zigzag", Partition::zigzag}, {"contiguous", Partition::contiguous}}},
      &JobConfig::cp_partition,
      "how tokens are dealt to ranks: two chunks per document, which balances causal masks, "
      "or one run of the whole row (default zigzag)");
}

Option timeout_option() {
  return {.name = "timeout",
          .kind = OptionKind::single,
          .value_name = "SECONDS",
          .help = "a step of the exchange that takes longer ends the job with exit status 3 (default 300)",
          .set = [](JobConfig& config,
                    const std::string& text) { config.timeout = parse_positive_seconds(text); },
          .get =
              [](const JobConfig& config) {
                std::array<char, 32> text{};
                const auto [end, error] =
                    std::to_chars(text.data(), text.data() + text.size(), config.timeout);
                return std::string{text.data(), end};
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
       number_option("num-attention-heads", 1, &JobConfig::num_attention_heads, "query heads"),
       number_option("num-query-groups", 1, &JobConfig::num_query_groups,
                     "key and value heads (default as many as query heads)"),
       number_option("kv-channels", 1, &JobConfig::kv_channels,
                     "head dimension of queries and keys, 8 to 256 in steps of 8"),
       number_option("v-channels", 1, &JobConfig::v_channels,
                     "head dimension of values (default kv-channels)"),
       number_option("num-layers", 1, &JobConfig::num_layers, "attention layers in sequence (default 1)"),
       choice_option("attention-mask-type", mask_type_names, &JobConfig::attention_mask_type,
                     "which keys of its document a token sees (default no_mask)"),
       data_type_option("dtype", &JobConfig::dtype, "element type in memory (default fp32)"),
       file_option("qkv", &JobConfig::qkv,
                   "HDF5 file with q, k, v [tokens, heads, channels] and optionally doc_lengths, out, dout; "
                   "it says the sizes above (default synthetic values)"),
       number_option("seed", 0, &JobConfig::seed, "of the synthetic values (default 0)")}};
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
       number_option("simulate-ranks-per-node", 0, &JobConfig::simulate_ranks_per_node,
                     "treat every N ranks as a node (default 0: the real nodes; plan: one node)"),
       data_type_option("grad-comm-dtype", &JobConfig::grad_comm_dtype,
                        "element type on the wire of gradients that are summed on arrival (default fp32)"),
       choice_option("backend", backend_choice_names, &JobConfig::backend,
                     "where tensors live and what moves them (default auto)"),
       choice_option("attention-kernel", kernel_choice_names, &JobConfig::attention_kernel,
                     "what computes attention on a rank; reference is fp64 and knows one context-parallel "
                     "rank only (default auto, the back end's own)"),
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
  static const std::vector<OptionGroup> table{problem_options(), rank_options(), measurement_options()};
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
