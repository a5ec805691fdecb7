#include "topology/level_digits.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "topology/rank_grid.hpp"
#include "topology/sequence_partition.hpp"

namespace hcp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Le;

using Groups = std::vector<std::vector<int>>;

TEST(LevelGroups, GoldenTables) {
  EXPECT_EQ(level_groups({4, 2}, {0}), (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(level_groups({4, 2}, {1}), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(level_groups({2, 4}, {0}), (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(level_groups({2, 4}, {1}), (Groups{{0, 2, 4, 6}, {1, 3, 5, 7}}));
  EXPECT_EQ(level_groups({2, 2, 2}, {2}), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(level_groups({2, 2, 4}, {2}),
            (Groups{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}}));
}

TEST(LevelGroups, GoldenOfACpGroupInTheGrid) {
  // World 16, TP 2, CP 4: the CP group [0,2,4,6] cut by sizes 2,2.
  const std::vector<int> cp_group = RankGrid::over_world(16, 2, 4, 1).group_of(0, "cp");
  const auto in_world = [&](Groups groups) {
    for (std::vector<int>& group : groups) {
      for (int& rank : group) {
        rank = cp_group.at(static_cast<std::size_t>(rank));
      }
    }
    return groups;
  };
  EXPECT_EQ(in_world(level_groups({2, 2}, {0})), (Groups{{0, 2}, {4, 6}}));
  EXPECT_EQ(in_world(level_groups({2, 2}, {1})), (Groups{{0, 4}, {2, 6}}));
}

TEST(LevelGroups, SeveralLevelsTogetherRunInnerDigitFastest) {
  EXPECT_EQ(level_groups({2, 2, 2}, {0, 2}), (Groups{{0, 1, 4, 5}, {2, 3, 6, 7}}));
  EXPECT_EQ(level_groups({2, 2, 2}, {2, 0}), level_groups({2, 2, 2}, {0, 2}));
  EXPECT_EQ(level_groups({3, 2}, {0, 1}), (Groups{{0, 1, 2, 3, 4, 5}}));
  EXPECT_EQ(level_groups({3, 1, 2}, {1}), (Groups{{0}, {1}, {2}, {3}, {4}, {5}}));
  EXPECT_EQ(level_groups({2}, {}), (Groups{{0}, {1}}));
}

/// Level sizes of one to three levels with a product of at most 24, size 1 included.
std::vector<std::vector<int>> many_level_sizes() {
  std::vector<std::vector<int>> all;
  for (int inner = 1; inner <= 6; ++inner) {
    all.push_back({inner});
    for (int middle = 1; middle <= 4; ++middle) {
      all.push_back({inner, middle});
      for (int outer = 1; inner * middle * outer <= 24 && outer <= 5; ++outer) {
        all.push_back({inner, middle, outer});
      }
    }
  }
  return all;
}

int product(const std::vector<int>& sizes) {
  int all = 1;
  for (const int size : sizes) {
    all *= size;
  }
  return all;
}

/// The levels whose bit is set in `mask`.
std::vector<int> levels_in(unsigned mask, std::size_t level_count) {
  std::vector<int> levels;
  for (std::size_t level = 0; level < level_count; ++level) {
    if ((mask >> level & 1U) != 0) {
      levels.push_back(static_cast<int>(level));
    }
  }
  return levels;
}

TEST(LevelGroups, MembersDifferOnlyInTheirLevelsAndEveryRankIsInOneGroup) {
  for (const std::vector<int>& sizes : many_level_sizes()) {
    for (unsigned mask = 0; mask < 1U << sizes.size(); ++mask) {
      std::vector<int> seen(static_cast<std::size_t>(product(sizes)), 0);
      for (const std::vector<int>& group : level_groups(sizes, levels_in(mask, sizes.size()))) {
        EXPECT_TRUE(std::is_sorted(group.begin(), group.end()));
        for (const int rank : group) {
          ++seen.at(static_cast<std::size_t>(rank));
          int stride = 1;
          for (std::size_t level = 0; level < sizes.size(); stride *= sizes[level], ++level) {
            if ((mask >> level & 1U) == 0) {
              EXPECT_EQ(rank / stride % sizes[level], group.front() / stride % sizes[level]);
            }
          }
        }
      }
      EXPECT_THAT(seen, ::testing::Each(1));
    }
  }
}

TEST(LevelDigits, AreInvertible) {
  EXPECT_THAT(level_digits(11, {2, 3, 4}), ElementsAre(1, 2, 1));
  for (const std::vector<int>& sizes : many_level_sizes()) {
    for (int rank = 0; rank < product(sizes); ++rank) {
      EXPECT_EQ(cp_rank_of(level_digits(rank, sizes), sizes), rank);
    }
  }
}

TEST(LevelDigits, RefuseLevelsThatDoNotExist) {
  EXPECT_THROW(static_cast<void>(level_place(0, {2, 2}, {2})), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(level_place(0, {2, 2}, {-1})), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(level_place(0, {2, 2}, {1, 1})), std::invalid_argument);
}

std::string refusal(const std::vector<int>& sizes, int cp_size) {
  try {
    check_level_sizes(sizes, cp_size);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(LevelSizes, MustMultiplyToTheContextParallelSize) {
  EXPECT_EQ(refusal({2, 4}, 8), "accepted");
  EXPECT_EQ(refusal({1, 8, 1}, 8), "accepted");
  EXPECT_THAT(refusal({2, 2}, 8), HasSubstr("2,2 multiply to 4; their product must be"));
  EXPECT_THAT(refusal({2, 2}, 8), HasSubstr("size 8"));
  EXPECT_THAT(refusal({4, 4}, 8), HasSubstr("multiply to 16"));
  EXPECT_THAT(refusal({-2, -4}, 8), HasSubstr("at least 1"));
  EXPECT_THAT(refusal({0}, 0), HasSubstr("at least 1"));
  EXPECT_THAT(refusal({65536, 65536, 65536, 65536}, 0), HasSubstr("overflow"));
}

TEST(ShardNumber, GoldenTables) {
  const auto shards = [](const std::vector<int>& sizes, const std::vector<int>& head_swap_levels) {
    std::vector<int> numbers;
    for (int rank = 0; rank < product(sizes); ++rank) {
      numbers.push_back(shard_number(rank, sizes, head_swap_levels));
    }
    return numbers;
  };
  EXPECT_THAT(shards({2, 2}, {}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(shards({2, 2}, {0}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(shards({2, 2}, {0, 1}), ElementsAre(0, 1, 2, 3));
  // A ring inside the node, heads swapped across nodes: ranks 0 and 2 swap heads and hold shards 0 and 1.
  EXPECT_THAT(shards({2, 2}, {1}), ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(shards({2, 3}, {1}), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(shards({2, 2, 2}, {0, 2}), ElementsAre(0, 1, 4, 5, 2, 3, 6, 7));
}

TEST(ShardNumber, IsABijection) {
  for (const std::vector<int>& sizes : many_level_sizes()) {
    for (unsigned mask = 0; mask < 1U << sizes.size(); ++mask) {
      std::vector<int> seen(static_cast<std::size_t>(product(sizes)), 0);
      for (int rank = 0; rank < product(sizes); ++rank) {
        ++seen.at(static_cast<std::size_t>(shard_number(rank, sizes, levels_in(mask, sizes.size()))));
      }
      EXPECT_THAT(seen, ::testing::Each(1));
    }
  }
}

TEST(ShardNumber, AHeadSwapGroupHoldsAtMostTwoRangesOfADocument) {
  for (const std::vector<int>& sizes : many_level_sizes()) {
    const std::vector<std::int64_t> one_document{997};
    const SequencePartition partition{Partition::zigzag, one_document, product(sizes)};
    for (unsigned mask = 0; mask < 1U << sizes.size(); ++mask) {
      const std::vector<int> head_swap_levels = levels_in(mask, sizes.size());
      for (const std::vector<int>& group : level_groups(sizes, head_swap_levels)) {
        std::vector<bool> held(997, false);
        for (const int rank : group) {
          for (const TokenRange& range : partition.ranges_of(shard_number(rank, sizes, head_swap_levels))) {
            std::fill(held.begin() + range.begin, held.begin() + range.end, true);
          }
        }
        int ranges = held.front() ? 1 : 0;
        for (std::size_t token = 1; token < held.size(); ++token) {
          ranges += held[token] && !held[token - 1] ? 1 : 0;
        }
        EXPECT_THAT(ranges, Le(2));
      }
    }
  }
}

}  // namespace
}  // namespace hcp
