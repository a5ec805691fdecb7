/// The command line and the deck, to a JobConfig.
///
///   hcp run inputs/quickstart.cfg --seq-length 4096
///   hcp plan inputs/quickstart.cfg
///
/// A deck holds `name = value` lines and # comments; the command line wins over it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/job/job_config.hpp"

namespace hcp {

enum class Command : std::uint8_t { run, plan, help, version };

/// What is asked for: the first word, or --help or --version anywhere.
/// @param arguments without the program's name
/// @throws std::invalid_argument if there is no such command
[[nodiscard]] Command parse_command(const std::vector<std::string>& arguments);

/// The options of `run` and `plan`.
/// @param arguments without the program's name, the command included
/// @throws std::invalid_argument for unknown options and values, options given twice, a deck that cannot be
///         read; the message names the option, and the line of the deck where it stands
[[nodiscard]] JobConfig parse_job_config(const std::vector<std::string>& arguments);

/// Commands and options, each with meaning, unit and default.
[[nodiscard]] std::string help_text();

}  // namespace hcp
