#include "src/job/option_values.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

namespace hcp {
namespace {

std::string quoted(std::string_view text) {
  return "'" + std::string{text} + "'";
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  return first == std::string_view::npos ? std::string_view{}
                                         : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

std::int64_t parse_whole_number(std::string_view text, std::int64_t lowest, std::int64_t highest) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) {
    throw std::invalid_argument{quoted(text) + " does not fit in 64 bits"};
  }
  if (error != std::errc{} || end != text.data() + text.size()) {
    throw std::invalid_argument{quoted(text) + " is not a whole number"};
  }
  if (value < lowest) {
    throw std::invalid_argument{quoted(text) + " is too small; at least " + std::to_string(lowest) +
                                " is needed"};
  }
  if (value > highest) {
    throw std::invalid_argument{quoted(text) + " is too large; at most " + std::to_string(highest) +
                                " is possible"};
  }
  return value;
}

int parse_count(std::string_view text, int lowest) {
  return static_cast<int>(parse_whole_number(text, lowest, std::numeric_limits<int>::max()));
}

double parse_positive_seconds(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value) || value <= 0) {
    throw std::invalid_argument{quoted(text) + " is not a number of seconds above 0"};
  }
  return value;
}

float parse_positive_number(std::string_view text) {
  float value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value) || value <= 0) {
    throw std::invalid_argument{quoted(text) + " is not a finite number above 0"};
  }
  return value;
}

double parse_probability(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() ||
      !(value == 0 || (value >= 0x1p-16 && value <= 1 - 0x1p-16))) {
    throw std::invalid_argument{quoted(text) +
                                " is not a probability that is drawn: 0, or from 2^-16 to 1 - 2^-16"};
  }
  return value;
}

bool parse_flag(std::string_view text) {
  return parse_choice(text, ChoiceNames<bool, 2>{{{"true", true}, {"false", false}}});
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parts.emplace_back(trimmed(text.substr(begin, end - begin)));
    if (parts.back().empty()) {
      throw std::invalid_argument{"a value is missing in the list " + quoted(text)};
    }
    begin = end + 1;
  }
  return parts;
}

std::string join_list(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    text += (text.empty() ? "" : ",") + part;
  }
  return text;
}

std::string shortened_list(const std::string& list, std::size_t most) {
  std::size_t end = 0;
  for (std::size_t value = 0; value < most; ++value) {
    end = list.find(',', end);
    if (end == std::string::npos) {
      return list;
    }
    ++end;
  }
  const auto values = std::count(list.begin(), list.end(), ',') + 1;
  return list.substr(0, end) + "… (" + std::to_string(values) + " values)";
}

}  // namespace hcp
