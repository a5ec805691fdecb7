#include "src/job/command_line.hpp"

#include <algorithm>
#include <boost/program_options.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>

#include "src/job/mask_options.hpp"
#include "src/job/option_table.hpp"

namespace hcp {
namespace {

namespace po = boost::program_options;

constexpr unsigned help_width = 110;

po::options_description boost_options() {
  po::options_description all(help_width, help_width / 2);
  for (const OptionGroup& group : option_table()) {
    po::options_description described(group.title, help_width, help_width / 2);
    for (const Option& option : group.options) {
      const po::value_semantic* value = nullptr;
      switch (option.kind) {
        case OptionKind::single:
          value = po::value<std::string>()->value_name(option.value_name);
          break;
        case OptionKind::list:
          value = po::value<std::vector<std::string>>()->multitoken()->value_name(option.value_name);
          break;
        case OptionKind::flag:
          value = po::bool_switch();
          break;
      }
      described.add_options()(option.name.c_str(), value, option.help.c_str());
    }
    all.add(described);
  }
  return all;
}

/// Sets `name` from `text`. `place` is what the message starts with.
void set_option(JobConfig& config, const Option& option, const std::string& text, const std::string& place) {
  try {
    option.set(config, text);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument{place + ": " + error.what()};
  }
}

/// "deck.cfg:7", where the line starts with `name`; "deck.cfg" if none does.
std::string place_in_deck(const std::string& deck, const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line.substr(0, line.find('=')));
    if (std::string word; words >> word && word == name) {
      return deck + ":" + std::to_string(number);
    }
  }
  return deck;
}

std::string read_deck(const std::string& deck) {
  if (std::filesystem::is_directory(deck)) {
    throw std::invalid_argument{"the deck " + deck + " is a directory"};
  }
  std::ifstream file(deck);
  std::ostringstream text;
  if (!file || (text << file.rdbuf()).bad()) {
    throw std::invalid_argument{"the deck " + deck + " cannot be read: " + std::strerror(errno)};
  }
  return text.str();
}

/// @param overruled  options that are read and forgotten
void apply_deck(JobConfig& config, const std::string& deck, const std::set<std::string>& overruled) {
  const std::string text = read_deck(deck);
  std::vector<po::option> options;
  try {
    std::istringstream stream(text);
    options = po::parse_config_file(stream, boost_options(), /*allow_unregistered=*/true).options;
  } catch (const po::error& error) {
    throw std::invalid_argument{deck + ": " + error.what() + "; a line is 'name = value' or a # comment"};
  }
  std::set<std::string> seen;
  for (const po::option& given : options) {
    const std::string& name = given.string_key;
    const std::string place = place_in_deck(deck, text, name);
    const Option* option = find_option(name);
    if (option == nullptr) {
      throw std::invalid_argument{place + ": " + unknown_option_message(name)};
    }
    if (!seen.insert(name).second) {
      throw std::invalid_argument{place + ": " + name + " is given twice"};
    }
    const std::string value = given.value.empty() ? "" : given.value.front();
    JobConfig forgotten;
    set_option(overruled.contains(name) ? forgotten : config, *option, value,
               place + ": " + name + " = " + value);
  }
}

/// A list takes every word up to the next option, also a deck that stands there by mistake.
std::optional<std::string> swallowed_deck(const po::option& given) {
  const auto found = std::find_if(given.value.begin(), given.value.end(), [](const std::string& word) {
    return word.find('/') != std::string::npos || word.ends_with(".cfg") || std::filesystem::exists(word);
  });
  return found == given.value.end() ? std::nullopt : std::optional{*found};
}

void apply_option(JobConfig& config, const po::option& given) {
  const Option& option = *find_option(given.string_key);
  const std::string text = option.kind == OptionKind::flag ? "true" : join_list(given.value);
  const std::string place = "--" + option.name + " " + text;
  try {
    set_option(config, option, text, place);
  } catch (const std::invalid_argument&) {
    const std::optional<std::string> deck =
        option.kind == OptionKind::list ? swallowed_deck(given) : std::nullopt;
    if (!deck) {
      throw;
    }
    throw std::invalid_argument{"'" + *deck + "' was taken as a value of --" + option.name +
                                "; if it is the deck, put it first: hcp run " + *deck + " --" + option.name +
                                " ..."};
  }
}

/// Options of a deck that mean nothing under the mask or the partition that the command line chose.
std::set<std::string> overruled_by(const std::vector<po::option>& command_line) {
  std::set<std::string> overruled;
  for (const po::option& given : command_line) {
    JobConfig chosen;
    if (given.string_key == "attention-mask-type") {
      apply_option(chosen, given);
      for (const std::string& name : options_of_other_masks(chosen.attention_mask_type)) {
        overruled.insert(name);
      }
    } else if (given.string_key == "cp-partition") {
      apply_option(chosen, given);
      if (chosen.cp_partition != Partition::striped) {
        overruled.insert("stripe-size");
      }
    }
  }
  return overruled;
}

std::vector<po::option> split_words(const std::vector<std::string>& words) {
  // No abbreviations, and no short options: "-4" is a value, wherever it stands.
  constexpr int style = po::command_line_style::allow_long | po::command_line_style::long_allow_adjacent |
                        po::command_line_style::long_allow_next;
  try {
    return po::command_line_parser(words).options(boost_options()).style(style).run().options;
  } catch (const po::unknown_option& error) {
    std::string name = error.get_option_name();
    name.erase(0, name.find_first_not_of('-'));
    throw std::invalid_argument{unknown_option_message(name)};
  } catch (const po::error& error) {
    throw std::invalid_argument{error.what()};
  }
}

}  // namespace

Command parse_command(const std::vector<std::string>& arguments) {
  const auto contain = [&](const char* word) {
    return std::find(arguments.begin(), arguments.end(), word) != arguments.end();
  };
  if (contain("--help")) {
    return Command::help;
  }
  if (contain("--version")) {
    return Command::version;
  }
  if (arguments.empty()) {
    throw std::invalid_argument{"a command is missing: run or plan; hcp --help explains them"};
  }
  try {
    return parse_choice(arguments.front(),
                        ChoiceNames<Command, 2>{{{"run", Command::run}, {"plan", Command::plan}}});
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument{std::string{"the first word is the command: "} + error.what()};
  }
}

JobConfig parse_job_config(const std::vector<std::string>& arguments) {
  JobConfig config;
  config.command_line = "hcp";
  for (const std::string& word : arguments) {
    config.command_line += " " + word;
  }

  std::vector<po::option> options;
  for (const po::option& given : split_words({arguments.begin() + 1, arguments.end()})) {
    if (!given.string_key.empty()) {
      options.push_back(given);
      continue;
    }
    const std::string& word = given.value.front();
    if (!config.deck.empty()) {
      throw std::invalid_argument{"'" + word + "' is one word too many: the deck is already " + config.deck};
    }
    config.deck = word;
  }
  if (!config.deck.empty()) {
    apply_deck(config, config.deck, overruled_by(options));
  }
  std::set<std::string> seen;
  for (const po::option& given : options) {
    if (!seen.insert(given.string_key).second) {
      throw std::invalid_argument{"--" + given.string_key + " is given twice"};
    }
    apply_option(config, given);
  }
  return config;
}

std::string help_text() {
  std::ostringstream text;
  text
      << "Exact attention over many ranks: context parallelism on a hierarchy of nodes.\n"
         "\n"
         "  mpirun -n RANKS hcp run [DECK] [--option value ...]   run it, verify it, time it\n"
         "  hcp plan [DECK] [--option value ...]                  bytes, buffers and memory, without MPI\n"
         "  hcp --help | --version\n"
         "\n"
         "A deck is a file of 'name = value' lines and # comments; the command line wins over it. Lists use\n"
         "commas; on the command line also blanks, up to the next option, so a deck stands before them.\n"
         "\n"
      << boost_options()
      << "\n"
         "Exit status: 0 passed or not verified, 1 verification failed, 2 bad input, 3 error of a library "
         "or\n"
         "timeout, 4 stopped by a signal.\n";
  return text.str();
}

}  // namespace hcp
