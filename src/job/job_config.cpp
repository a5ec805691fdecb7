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

}  // namespace hcp
