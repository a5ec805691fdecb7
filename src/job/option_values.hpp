/// The text of one option's value, to the value itself. Nothing is guessed and nothing left over.
///
/// Every function throws std::invalid_argument with the text and what would be right; the caller knows which
/// option it belongs to and puts that in front.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hcp {

/// A decimal number without any suffix.
[[nodiscard]] std::int64_t parse_whole_number(std::string_view text, std::int64_t lowest,
                                              std::int64_t highest = INT64_MAX);

/// As above, for numbers of ranks, layers, iterations and the like.
[[nodiscard]] int parse_count(std::string_view text, int lowest);

/// A finite number above zero.
[[nodiscard]] double parse_positive_seconds(std::string_view text);

/// A number above zero that a float holds, also after rounding to it.
[[nodiscard]] float parse_positive_number(std::string_view text);

/// A probability that is drawn in steps of 2^-16, of what may not be all: 0, or 2^-16 to 1 - 2^-16.
[[nodiscard]] double parse_probability(std::string_view text);

/// "true" or "false".
[[nodiscard]] bool parse_flag(std::string_view text);

/// The parts between commas, without blanks around them. No part may be empty.
[[nodiscard]] std::vector<std::string> split_list(std::string_view text);

/// The parts, joined by commas.
[[nodiscard]] std::string join_list(const std::vector<std::string>& parts);

/// "1,2,… (10000 values)": a list of more than `most` values without its end; a shorter one as it is.
[[nodiscard]] std::string shortened_list(const std::string& list, std::size_t most);

/// The names that an enumeration has for users.
template <typename Choice, std::size_t Count>
using ChoiceNames = std::array<std::pair<std::string_view, Choice>, Count>;

/// The choice that is called `text`.
template <typename Choice, std::size_t Count>
[[nodiscard]] Choice parse_choice(std::string_view text, const ChoiceNames<Choice, Count>& names) {
  std::string allowed;
  for (const auto& [name, choice] : names) {
    if (name == text) {
      return choice;
    }
    allowed += (allowed.empty() ? "" : ", ") + std::string{name};
  }
  throw std::invalid_argument{"'" + std::string{text} + "' is none of " + allowed};
}

/// What `choice` is called.
template <typename Choice, std::size_t Count>
[[nodiscard]] std::string_view name_in(const ChoiceNames<Choice, Count>& names, Choice choice) {
  for (const auto& [name, named] : names) {
    if (named == choice) {
      return name;
    }
  }
  throw std::logic_error{"an enumerator without a name"};
}

}  // namespace hcp
