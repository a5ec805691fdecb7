/// The levels of a CP group, as arithmetic on CP ranks.
///
/// Level sizes are listed inner first: level 0 is adjacent CP ranks (one node), level 1 lies across nodes, …
/// A CP rank is the mixed-radix number of its digits, digit 0 fastest:
/// cp_rank = digit_0 + h_0·(digit_1 + h_1·(digit_2 + …)).
///
///   sizes 2,4         level 0: {0,1} {2,3} {4,5} {6,7}      level 1: {0,2,4,6} {1,3,5,7}
///   sizes 2,2,2       level 2: {0,4} {1,5} {2,6} {3,7}      levels 0 and 2: {0,1,4,5} {2,3,6,7}
#pragma once

#include <vector>

namespace hcp {

/// @throws std::invalid_argument if a size is below 1 or the product of all is not `cp_size`
void check_level_sizes(const std::vector<int>& level_sizes, int cp_size);

/// [levels], inner first.
[[nodiscard]] std::vector<int> level_digits(int cp_rank, const std::vector<int>& level_sizes);

/// The inverse of level_digits.
[[nodiscard]] int cp_rank_of(const std::vector<int>& digits, const std::vector<int>& level_sizes);

/// Ranks that differ only in the digits of some levels: the group's number among all such groups, the rank
/// in the group and the group's size.
struct LevelPlace {
  int group = 0;  ///< mixed-radix number of the other levels' digits, inner fastest
  int rank = 0;   ///< mixed-radix number of these levels' digits, inner fastest
  int size = 1;
  friend bool operator==(const LevelPlace&, const LevelPlace&) = default;
};

/// @param levels indices into level_sizes, as a set: their order means nothing
/// @throws std::invalid_argument if a level does not exist or is given twice
[[nodiscard]] LevelPlace level_place(int cp_rank, const std::vector<int>& level_sizes,
                                     const std::vector<int>& levels);

/// All groups of CP ranks that differ only in the digits of `levels`: [group][rank in the group].
/// @source Megatron-Core, megatron/core/parallel_state.py, create_hierarchical_groups (one level at a time)
[[nodiscard]] std::vector<std::vector<int>> level_groups(const std::vector<int>& level_sizes,
                                                         const std::vector<int>& levels);

/// Which shard of the tokens a CP rank holds: the mixed-radix number in which the digits of the levels that
/// swap heads run fastest, then the others, both inner first. The shards of a head-swap group are then
/// neighbours, so that after the swap a zigzag shard is two ranges per document whatever the order of levels.
/// @param head_swap_levels the levels of the all-to-all algorithm; empty: the shard is the CP rank
[[nodiscard]] int shard_number(int cp_rank, const std::vector<int>& level_sizes,
                               const std::vector<int>& head_swap_levels);

}  // namespace hcp
