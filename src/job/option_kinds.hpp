/// The kinds of options that occur more than once: how the text of one becomes a member of JobConfig and
/// back.
#pragma once

#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/job/option_table.hpp"

namespace hcp {

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

/// The shortest text that reads back as the same number.
template <typename Real>
std::string shortest_text(Real value) {
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end};
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

inline Option data_type_option(std::string name, DataType JobConfig::*member, std::string help) {
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

inline Option flag_option(std::string name, bool JobConfig::*member, std::string help) {
  return {.name = std::move(name),
          .kind = OptionKind::flag,
          .value_name = "",
          .help = std::move(help),
          .set = [=](JobConfig& config, const std::string& text) { config.*member = parse_flag(text); },
          .get = [=](const JobConfig& config) { return std::string{config.*member ? "true" : "false"}; }};
}

inline Option file_option(std::string name, std::optional<std::string> JobConfig::*member, std::string help) {
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

}  // namespace hcp
