#include "src/job/job_config.hpp"

#include "src/job/option_table.hpp"

namespace hcp {

std::vector<std::pair<std::string, std::string>> describe(const JobConfig& config) {
  std::vector<std::pair<std::string, std::string>> described;
  for (const OptionGroup& group : option_table()) {
    for (const Option& option : group.options) {
      if (std::optional<std::string> value = option.get(config)) {
        described.emplace_back(option.name, *std::move(value));
      }
    }
  }
  return described;
}

std::string describe_partition(const JobConfig& config) {
  std::string text = std::string{name_of(config.cp_partition)} + " partition";
  if (config.cp_partition == Partition::striped) {
    text += ", stripe size " + std::to_string(config.stripe_size.value_or(default_stripe_size));
  }
  if (config.cp_partition == Partition::balanced &&
      (config.kv_seq_length || !config.kv_doc_lengths.empty())) {
    text += " of queries, contiguous of keys";
  }
  return text;
}

}  // namespace hcp
