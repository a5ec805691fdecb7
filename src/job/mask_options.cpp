#include "src/job/mask_options.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "src/job/input_mask.hpp"
#include "src/job/option_table.hpp"

namespace hcp {
namespace {

using Lengths = std::vector<std::int64_t>;

/// An option and the masks that it belongs to.
struct MaskOption {
  const char* name;
  std::vector<MaskType> needed_by;
  std::vector<MaskType> optional_for;
};

const std::vector<MaskOption>& mask_options() {
  using enum MaskType;
  static const std::vector<MaskOption> options{
      {"window-size", {sliding_window}, {causal, causal_bottom_right}},
      {"doc-valid-lengths", {padding, padding_causal}, {}},
      {"prefix-lengths", {prefix_lm}, {}},
      {"mask-block-size", {block_causal, block_diffusion}, {}},
      {"mask-file", {intervals}, {}}};
  return options;
}

bool contains(const std::vector<MaskType>& types, MaskType type) {
  return std::ranges::find(types, type) != types.end();
}

bool takes(const MaskOption& option, MaskType type) {
  return contains(option.needed_by, type) || contains(option.optional_for, type);
}

std::string joined_names(const std::vector<MaskType>& first, const std::vector<MaskType>& second) {
  std::vector<std::string> names;
  for (const auto* types : {&first, &second}) {
    for (const MaskType type : *types) {
      names.emplace_back(name_in(mask_type_names, type));
    }
  }
  return join_list(names);
}

/// "--attention-mask-type causal"
std::string chosen_mask(const JobConfig& config) {
  return "--attention-mask-type " + std::string{name_in(mask_type_names, config.attention_mask_type)};
}

constexpr std::size_t most_shown = 8;

void check_one_per_document(const char* option, const Lengths& values, const ProblemShape& shape) {
  if (!values.empty() && values.size() != shape.doc_lengths.size()) {
    throw std::invalid_argument{std::string{"--"} + option + " has " + std::to_string(values.size()) +
                                " values, but a row has " + std::to_string(shape.doc_lengths.size()) +
                                " documents; give one for each"};
  }
}

AttentionMask intervals_mask(const std::string& file, const ProblemShape& shape) {
  const Lengths bounds = read_mask_intervals(file, shape.seq_length, shape.tokens());
  if (std::ssize(bounds) == 4 * shape.tokens()) {
    return AttentionMask::intervals(bounds, shape.kv_tokens());
  }
  static_cast<void>(AttentionMask::intervals(bounds, shape.kv_seq_length));  // no row may see the next one
  Lengths of_all_rows;
  for (std::int64_t row = 0; row < shape.micro_batch_size; ++row) {
    for (const std::int64_t bound : bounds) {
      of_all_rows.push_back(row * shape.kv_seq_length + bound);
    }
  }
  return AttentionMask::intervals(of_all_rows, shape.kv_tokens());
}

AttentionMask make_mask(const JobConfig& config, const ProblemShape& shape) {
  const Lengths queries = shape.document_offsets();
  const Lengths keys = shape.kv_document_offsets();
  const DocumentBounds documents{queries, keys};
  const Window window = config.window_size.value_or(Window{});
  switch (config.attention_mask_type) {
    case MaskType::no_mask:
      return AttentionMask::no_mask(documents);
    case MaskType::causal:
      return AttentionMask::causal(documents, window);
    case MaskType::causal_bottom_right:
      return AttentionMask::causal_bottom_right(documents, window);
    case MaskType::sliding_window:
      return AttentionMask::sliding_window(documents, window);
    case MaskType::padding:
      return AttentionMask::padding(queries, shape.of_all_rows(config.doc_valid_lengths));
    case MaskType::padding_causal:
      return AttentionMask::padding_causal(queries, shape.of_all_rows(config.doc_valid_lengths));
    case MaskType::prefix_lm:
      return AttentionMask::prefix_lm(queries, shape.of_all_rows(config.prefix_lengths));
    case MaskType::block_causal:
      return AttentionMask::block_causal(queries, config.mask_block_size.value());
    case MaskType::block_diffusion:
      return AttentionMask::block_diffusion(queries, config.mask_block_size.value());
    case MaskType::intervals:
      return intervals_mask(config.mask_file.value(), shape);
  }
  throw std::logic_error{"a mask that is not made"};
}

}  // namespace

void check_mask_options(const JobConfig& config) {
  const MaskType type = config.attention_mask_type;
  for (const MaskOption& of_masks : mask_options()) {
    const Option& option = *find_option(of_masks.name);
    const std::optional<std::string> value = option.get(config);
    if (!value && contains(of_masks.needed_by, type)) {
      throw std::invalid_argument{chosen_mask(config) + " needs --" + option.name + " " + option.value_name};
    }
    if (value && !takes(of_masks, type)) {
      throw std::invalid_argument{"--" + option.name + " " + shortened_list(*value, most_shown) +
                                  " does not belong to " + chosen_mask(config) + "; leave it out, or take " +
                                  joined_names(of_masks.needed_by, of_masks.optional_for)};
    }
  }
}

std::vector<std::string> options_of_other_masks(MaskType type) {
  std::vector<std::string> names;
  for (const MaskOption& option : mask_options()) {
    if (!takes(option, type)) {
      names.emplace_back(option.name);
    }
  }
  return names;
}

void check_mask_shape(const JobConfig& config, const ProblemShape& shape) {
  using enum MaskType;
  const std::vector<MaskType> of_any_keys{no_mask, causal, causal_bottom_right, sliding_window, intervals};
  if (!shape.is_self_attention() && !contains(of_any_keys, config.attention_mask_type)) {
    throw std::invalid_argument{
        chosen_mask(config) + " is of tokens with themselves, but the keys are others: --kv-seq-length " +
        std::to_string(shape.kv_seq_length) + ", --seq-length " + std::to_string(shape.seq_length) +
        "; leave --kv-seq-length and --kv-doc-lengths out, or take " + joined_names(of_any_keys, {})};
  }
  check_one_per_document("doc-valid-lengths", config.doc_valid_lengths, shape);
  check_one_per_document("prefix-lengths", config.prefix_lengths, shape);
}

AttentionMask mask_of(const JobConfig& config, const ProblemShape& shape) {
  try {
    return make_mask(config, shape);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument{chosen_mask(config) + ": " + error.what()};
  }
}

std::string describe_mask(const JobConfig& config) {
  std::string text{name_in(mask_type_names, config.attention_mask_type)};
  for (const MaskOption& option : mask_options()) {
    if (const std::optional<std::string> value = find_option(option.name)->get(config)) {
      text += ", " + std::string{option.name} + " " + shortened_list(*value, most_shown);
    }
  }
  return text;
}

}  // namespace hcp
