/// Every option of the program, once: its name, its help, how its text becomes a value and back.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/job/job_config.hpp"

namespace hcp {

enum class OptionKind : std::uint8_t {
  single,  ///< one value
  list,    ///< values separated by commas, on the command line also by blanks
  flag,    ///< no value on the command line, true or false in a deck
};

struct Option {
  std::string name;
  OptionKind kind = OptionKind::single;
  std::string value_name;  ///< what stands for the value in the help text
  std::string help;        ///< meaning, unit and default
  /// @throws std::invalid_argument that does not name the option
  std::function<void(JobConfig&, const std::string&)> set;
  /// Text that `set` reads back; nothing where the user did not say.
  std::function<std::optional<std::string>(const JobConfig&)> get;
};

struct OptionGroup {
  std::string title;
  std::vector<Option> options;
};

/// In the order of the help text.
[[nodiscard]] const std::vector<OptionGroup>& option_table();

/// The option called `name`, or null.
[[nodiscard]] const Option* find_option(const std::string& name);

/// "'seq-lenght' is not an option; did you mean seq-length?"
[[nodiscard]] std::string unknown_option_message(const std::string& name);

}  // namespace hcp
