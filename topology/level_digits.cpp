#include "topology/level_digits.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

namespace hcp {

namespace {

std::string list_text(const std::vector<int>& values) {
  std::string text;
  for (const int value : values) {
    text += (text.empty() ? "" : ",") + std::to_string(value);
  }
  return text;
}

/// Which levels are in the set.
std::vector<bool> level_mask(const std::vector<int>& levels, std::size_t level_count) {
  std::vector<bool> mask(level_count, false);
  for (const int level : levels) {
    if (level < 0 || static_cast<std::size_t>(level) >= level_count ||
        mask[static_cast<std::size_t>(level)]) {
      throw std::invalid_argument{"levels " + list_text(levels) + "; each must be below " +
                                  std::to_string(level_count) + " and given once"};
    }
    mask[static_cast<std::size_t>(level)] = true;
  }
  return mask;
}

}  // namespace

void check_level_sizes(const std::vector<int>& level_sizes, int cp_size) {
  std::int64_t product = 1;
  for (const int size : level_sizes) {
    if (size < 1) {
      throw std::invalid_argument{"hierarchical context-parallel sizes " + list_text(level_sizes) +
                                  "; each must be at least 1"};
    }
    product *= size;  // at most 2^31 before, so below 2^62 after
    if (product > std::numeric_limits<int>::max()) {
      throw std::invalid_argument{"hierarchical context-parallel sizes " + list_text(level_sizes) +
                                  " overflow; their product must be the context-parallel size " +
                                  std::to_string(cp_size)};
    }
  }
  if (product != cp_size) {
    throw std::invalid_argument{"hierarchical context-parallel sizes " + list_text(level_sizes) +
                                " multiply to " + std::to_string(product) +
                                "; their product must be the context-parallel size " +
                                std::to_string(cp_size)};
  }
}

std::vector<int> level_digits(int cp_rank, const std::vector<int>& level_sizes) {
  std::vector<int> digits;
  for (const int size : level_sizes) {
    digits.push_back(cp_rank % size);
    cp_rank /= size;
  }
  return digits;
}

int cp_rank_of(const std::vector<int>& digits, const std::vector<int>& level_sizes) {
  int cp_rank = 0;
  for (std::size_t level = level_sizes.size(); level-- > 0;) {
    cp_rank = cp_rank * level_sizes[level] + digits.at(level);
  }
  return cp_rank;
}

LevelPlace level_place(int cp_rank, const std::vector<int>& level_sizes, const std::vector<int>& levels) {
  const std::vector<bool> in_set = level_mask(levels, level_sizes.size());
  const std::vector<int> digits = level_digits(cp_rank, level_sizes);
  LevelPlace place;
  int groups = 1;
  for (std::size_t level = 0; level < level_sizes.size(); ++level) {
    if (in_set[level]) {
      place.rank += digits[level] * place.size;
      place.size *= level_sizes[level];
    } else {
      place.group += digits[level] * groups;
      groups *= level_sizes[level];
    }
  }
  return place;
}

std::vector<std::vector<int>> level_groups(const std::vector<int>& level_sizes,
                                           const std::vector<int>& levels) {
  int cp_size = 1;
  for (const int size : level_sizes) {
    cp_size *= size;
  }
  const int group_size = level_place(0, level_sizes, levels).size;
  std::vector<std::vector<int>> groups(static_cast<std::size_t>(cp_size / group_size),
                                       std::vector<int>(static_cast<std::size_t>(group_size)));
  for (int cp_rank = 0; cp_rank < cp_size; ++cp_rank) {
    const LevelPlace place = level_place(cp_rank, level_sizes, levels);
    groups[static_cast<std::size_t>(place.group)][static_cast<std::size_t>(place.rank)] = cp_rank;
  }
  return groups;
}

int shard_number(int cp_rank, const std::vector<int>& level_sizes, const std::vector<int>& head_swap_levels) {
  const LevelPlace place = level_place(cp_rank, level_sizes, head_swap_levels);
  return place.rank + place.size * place.group;
}

}  // namespace hcp
