#include "src/exchange/scheme.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <utility>

#include "src/exchange/nearest_name.hpp"

namespace hcp {
namespace {

constexpr std::array algorithms_by_name{
    std::pair{std::string_view{"p2p"}, Algorithm::p2p},
    std::pair{std::string_view{"all_gather"}, Algorithm::all_gather},
    std::pair{std::string_view{"a2a"}, Algorithm::a2a},
    // The help text of Megatron-LM spells it so.
    std::pair{std::string_view{"allgather"}, Algorithm::all_gather},
};

Algorithm parse_algorithm(std::string_view name, std::string_view scheme) {
  std::vector<std::string> known;
  for (const auto& [known_name, algorithm] : algorithms_by_name) {
    if (name == known_name) {
      return algorithm;
    }
    known.emplace_back(known_name);
  }
  const std::string place = name == scheme ? "" : " in '" + std::string{scheme} + "'";
  std::string message;
  if (name.empty()) {
    message = "a name is missing" + place;
  } else {
    message = "'" + std::string{name} + "'" + place + " is not an algorithm of context parallelism";
    if (const std::string nearest = nearest_name(name, known); !nearest.empty()) {
      message += "; did you mean " + nearest + "?";
    }
  }
  throw std::invalid_argument{message +
                              " (p2p, all_gather or a2a, one per level, joined by '+', inner first)"};
}

std::string joined(const std::vector<int>& sizes) {
  std::string text;
  for (const int size : sizes) {
    text += (text.empty() ? "" : ",") + std::to_string(size);
  }
  return text;
}

/// The product of `sizes` while it does not exceed `limit`, else nothing. Sizes are at least 1.
std::optional<int> product_up_to(const std::vector<int>& sizes, int limit) {
  int product = 1;
  for (const int size : sizes) {
    if (size > limit / product) {
      return std::nullopt;
    }
    product *= size;
  }
  return product;
}

/// Why levels of size 1 are there, for the note that says they vanished.
std::string reason_for_size_one(const ResolvedScheme& scheme) {
  if (scheme.source == SizesSource::given) {
    return "sizes " + scheme.requested.sizes();
  }
  return scheme.requested.levels.front().size == 1 ? "one context-parallel rank per node" : "one node";
}

}  // namespace

std::string_view name_of(Algorithm algorithm) {
  const auto* const found = std::find_if(algorithms_by_name.begin(), algorithms_by_name.end(),
                                         [&](const auto& entry) { return entry.second == algorithm; });
  return found->first;
}

std::string_view name_of(SizesSource source) {
  switch (source) {
    case SizesSource::whole_group:
      return "one level over the whole group";
    case SizesSource::given:
      return "given";
    case SizesSource::node_layout:
      return "node layout";
  }
  throw std::logic_error{"no such source of sizes"};
}

std::string Scheme::name() const {
  std::vector<Algorithm> algorithms;
  for (const Level& level : levels) {
    algorithms.push_back(level.algorithm);
  }
  return levels.empty() ? "none" : scheme_name(algorithms);
}

std::string Scheme::sizes() const {
  std::vector<int> sizes;
  for (const Level& level : levels) {
    sizes.push_back(level.size);
  }
  return levels.empty() ? "1" : joined(sizes);
}

int Scheme::size() const {
  int product = 1;
  for (const Level& level : levels) {
    product *= level.size;
  }
  return product;
}

int Scheme::a2a_size() const {
  int product = 1;
  for (const Level& level : levels) {
    product *= level.algorithm == Algorithm::a2a ? level.size : 1;
  }
  return product;
}

std::vector<Algorithm> parse_scheme_name(std::string_view text) {
  std::vector<Algorithm> algorithms;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('+', begin), text.size());
    algorithms.push_back(parse_algorithm(text.substr(begin, end - begin), text));
    begin = end + 1;
  }
  return algorithms;
}

std::string scheme_name(const std::vector<Algorithm>& algorithms) {
  std::string text;
  for (const Algorithm algorithm : algorithms) {
    text += (text.empty() ? "" : "+") + std::string{name_of(algorithm)};
  }
  return text;
}

void check_scheme(const std::vector<Algorithm>& algorithms, int cp_size, const std::vector<int>& sizes) {
  const std::string name = scheme_name(algorithms);
  const std::string given_sizes = "--hierarchical-context-parallel-sizes " + joined(sizes);
  if (sizes.empty()) {
    if (algorithms.size() > 2) {
      throw std::invalid_argument{"--cp-comm-type " + name + " has " + std::to_string(algorithms.size()) +
                                  " levels, and only two can be taken from the node layout; give " +
                                  "--hierarchical-context-parallel-sizes, inner first"};
    }
    return;
  }
  for (const int size : sizes) {
    if (size < 1) {
      throw std::invalid_argument{given_sizes + ": the size " + std::to_string(size) +
                                  " is not a number of ranks; every size is at least 1"};
    }
  }
  if (algorithms.size() > 1 && algorithms.size() != sizes.size()) {
    throw std::invalid_argument{"--cp-comm-type " + name + " has " + std::to_string(algorithms.size()) +
                                " levels, but " + given_sizes + " has " + std::to_string(sizes.size()) +
                                (sizes.size() == 1 ? " size" : " sizes") +
                                "; give one size per level, inner first"};
  }
  const std::optional<int> product = product_up_to(sizes, std::numeric_limits<int>::max());
  if (product != cp_size) {
    throw std::invalid_argument{given_sizes + ": the product of the sizes is " +
                                (product ? std::to_string(*product)
                                         : "more than " + std::to_string(std::numeric_limits<int>::max())) +
                                ", but the context-parallel size is " + std::to_string(cp_size) +
                                "; they have to be equal"};
  }
}

ResolvedScheme resolve_scheme(const std::vector<Algorithm>& algorithms, int cp_size,
                              const std::vector<int>& sizes, std::optional<CpNodes> nodes) {
  check_scheme(algorithms, cp_size, sizes);

  ResolvedScheme resolved;
  std::vector<Algorithm> level_algorithms = algorithms;
  std::vector<int> level_sizes = sizes;
  if (!sizes.empty()) {
    resolved.source = SizesSource::given;
    if (algorithms.size() == 1) {
      level_algorithms.assign(sizes.size(), algorithms.front());
    }
  } else if (algorithms.size() == 1) {
    resolved.source = SizesSource::whole_group;
    level_sizes = {cp_size};
  } else {
    resolved.source = SizesSource::node_layout;
    if (!nodes) {
      throw std::invalid_argument{"--cp-comm-type " + scheme_name(algorithms) +
                                  " needs as many context-parallel ranks on every node, or " +
                                  "--hierarchical-context-parallel-sizes, inner first"};
    }
    level_sizes = {nodes->ranks_per_node, nodes->nodes};
    if (product_up_to(level_sizes, cp_size) != cp_size) {
      throw std::invalid_argument{
          std::to_string(nodes->nodes) + " nodes with " + std::to_string(nodes->ranks_per_node) +
          " context-parallel ranks each are not the context-parallel size " + std::to_string(cp_size)};
    }
  }

  for (std::size_t level = 0; level < level_sizes.size(); ++level) {
    resolved.requested.levels.push_back({level_algorithms[level], level_sizes[level]});
    if (level_sizes[level] > 1) {
      resolved.effective.levels.push_back(resolved.requested.levels.back());
    }
  }

  const std::string name = resolved.requested.name();
  if (level_algorithms.size() != algorithms.size()) {
    resolved.notes.push_back(scheme_name(algorithms) + " with sizes " + joined(sizes) + " is " + name);
  }
  if (resolved.effective.levels.empty()) {
    resolved.notes.push_back(name + " exchanges nothing: one rank");
  } else if (resolved.effective.levels.size() != resolved.requested.levels.size()) {
    resolved.notes.push_back(name + " runs as " + resolved.effective.name() + ": " +
                             reason_for_size_one(resolved));
  }
  return resolved;
}

void check_query_heads(const Scheme& scheme, std::int64_t query_heads) {
  if (scheme.a2a_size() > query_heads) {
    throw std::invalid_argument{"--cp-comm-type " + scheme.name() + " with sizes " + scheme.sizes() +
                                " swaps heads over " + std::to_string(scheme.a2a_size()) +
                                " ranks, but a rank has only " + std::to_string(query_heads) +
                                " query heads; use p2p or all_gather on a level, or smaller a2a levels"};
  }
}

}  // namespace hcp
