#include "topology/rank_grid.hpp"

#include <gmock/gmock.h>

#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <tuple>

namespace hcp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Groups = std::vector<std::vector<int>>;

RankGrid grid_of_16() {
  return RankGrid::over_world(16, 2, 4, 1);
}  // DP 2

TEST(RankGrid, GoldenGroupsOfSixteenRanks) {
  const RankGrid grid = grid_of_16();
  EXPECT_EQ(grid.groups("tp"),
            (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}}));
  EXPECT_EQ(grid.groups("cp"), (Groups{{0, 2, 4, 6}, {1, 3, 5, 7}, {8, 10, 12, 14}, {9, 11, 13, 15}}));
  EXPECT_EQ(grid.groups("dp"),
            (Groups{{0, 8}, {1, 9}, {2, 10}, {3, 11}, {4, 12}, {5, 13}, {6, 14}, {7, 15}}));
  EXPECT_EQ(grid.groups("dp-cp"), (Groups{{0, 2, 4, 6, 8, 10, 12, 14}, {1, 3, 5, 7, 9, 11, 13, 15}}));
  EXPECT_EQ(grid.groups("tp-cp"), (Groups{{0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14, 15}}));
  EXPECT_EQ(grid.groups("tp-dp"), (Groups{{0, 1, 8, 9}, {2, 3, 10, 11}, {4, 5, 12, 13}, {6, 7, 14, 15}}));
  EXPECT_EQ(grid.groups("tp-dp-cp"), (Groups{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}}));
  EXPECT_THAT(grid.groups("pp"), SizeIs(16));
}

TEST(RankGrid, GoldenGroupsWithPipeline) {
  const RankGrid grid = RankGrid::over_world(16, 1, 8, 2);
  EXPECT_EQ(grid.sizes().dp, 1);
  EXPECT_EQ(grid.groups("cp"), (Groups{{0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14, 15}}));
  EXPECT_EQ(grid.groups("pp"),
            (Groups{{0, 8}, {1, 9}, {2, 10}, {3, 11}, {4, 12}, {5, 13}, {6, 14}, {7, 15}}));
}

TEST(RankGrid, OrderOfAxisNamesMeansNothing) {
  const RankGrid grid = grid_of_16();
  EXPECT_EQ(grid.groups("cp-dp"), grid.groups("dp-cp"));
  EXPECT_EQ(grid.groups("dp-cp-tp"), grid.groups("tp-dp-cp"));
}

TEST(RankGrid, GroupOfRank) {
  EXPECT_THAT(grid_of_16().group_of(11, "cp"), ElementsAre(9, 11, 13, 15));
  EXPECT_THAT(grid_of_16().group_of(5, "tp-dp"), ElementsAre(4, 5, 12, 13));
}

TEST(RankGrid, RankIsTheFormulaAndCoordinatesInvertIt) {
  const RankGrid grid{{.tp = 2, .cp = 3, .dp = 4, .pp = 5}};
  EXPECT_EQ(grid.world_size(), 120);
  EXPECT_EQ(grid.rank_of({.tp = 1, .cp = 2, .dp = 3, .pp = 4}), 1 + 2 * (2 + 3 * (3 + 4 * 4)));
  int expected = 0;
  for (int pp = 0; pp < 5; ++pp) {
    for (int dp = 0; dp < 4; ++dp) {
      for (int cp = 0; cp < 3; ++cp) {
        for (int tp = 0; tp < 2; ++tp, ++expected) {
          const GridCoordinates at{.tp = tp, .cp = cp, .dp = dp, .pp = pp};
          EXPECT_EQ(grid.rank_of(at), expected);
          EXPECT_EQ(grid.coordinates_of(expected), at);
        }
      }
    }
  }
}

// Brute force: walk the ranks in ascending order and put each with those that agree on the other axes. Ranks
// ascend inside a group, and groups ascend by their first rank, because the leftmost axis is fastest.
Groups groups_by_search(const GridSizes& sizes, bool tp_in, bool cp_in, bool dp_in, bool pp_in) {
  std::map<std::tuple<int, int, int, int>, std::size_t> group_of;
  Groups groups;
  int rank = 0;
  for (int pp = 0; pp < sizes.pp; ++pp) {
    for (int dp = 0; dp < sizes.dp; ++dp) {
      for (int cp = 0; cp < sizes.cp; ++cp) {
        for (int tp = 0; tp < sizes.tp; ++tp, ++rank) {
          const auto key = std::tuple{tp_in ? 0 : tp, cp_in ? 0 : cp, dp_in ? 0 : dp, pp_in ? 0 : pp};
          const auto [at, is_new] = group_of.try_emplace(key, groups.size());
          if (is_new) {
            groups.emplace_back();
          }
          groups[at->second].push_back(rank);
        }
      }
    }
  }
  return groups;
}

TEST(RankGrid, RandomShapesAgreeWithSearch) {
  std::mt19937 random{20240611};
  std::uniform_int_distribution<int> size{1, 5};
  for (int shape = 0; shape < 60; ++shape) {
    const GridSizes sizes{.tp = size(random), .cp = size(random), .dp = size(random), .pp = size(random)};
    const RankGrid grid{sizes};
    for (int mask = 1; mask < 16; ++mask) {
      std::string axes;
      for (int axis = 0; axis < 4; ++axis) {
        if ((mask >> axis & 1) != 0) {
          axes = std::string{std::string_view{"tpcpdppp"}.substr(static_cast<std::size_t>(2 * axis), 2)} +
                 (axes.empty() ? "" : "-") + axes;
        }
      }
      EXPECT_EQ(grid.groups(axes),
                groups_by_search(sizes, (mask & 1) != 0, (mask & 2) != 0, (mask & 4) != 0, (mask & 8) != 0))
          << axes << " of " << sizes.tp << "," << sizes.cp << "," << sizes.dp << "," << sizes.pp;
    }
  }
}

TEST(RankGrid, LargeWorld) {
  const RankGrid grid = RankGrid::over_world(1344 * 8, 8, 2, 12);
  EXPECT_EQ(grid.sizes(), (GridSizes{.tp = 8, .cp = 2, .dp = 56, .pp = 12}));
  EXPECT_THAT(grid.group_of(9, "cp"), ElementsAre(1, 9));
  EXPECT_THAT(grid.groups("cp"), SizeIs(1344 * 4));
}

std::string refusal(const auto& construct) {
  try {
    construct();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(RankGrid, RefusesWhatDoesNotDivide) {
  EXPECT_THAT(refusal([] { return RankGrid::over_world(12, 2, 4, 1); }), HasSubstr("12 is not divisible by"));
  EXPECT_THAT(refusal([] { return RankGrid::over_world(12, 2, 4, 1); }), HasSubstr("2·4·1 = 8"));
  EXPECT_THAT(refusal([] { return RankGrid::over_world(4, 1, 8, 1); }), HasSubstr("not divisible"));
}

TEST(RankGrid, RefusesSizesBelowOne) {
  EXPECT_THAT(refusal([] { return RankGrid{{.tp = 1, .cp = 0, .dp = 1, .pp = 1}}; }),
              HasSubstr("cp size = 0; it must be at least 1"));
  EXPECT_THAT(refusal([] { return RankGrid::over_world(4, 1, 2, -2); }), HasSubstr("pp size = -2"));
  EXPECT_THAT(refusal([] { return RankGrid::over_world(0, 1, 1, 1); }), HasSubstr("number of ranks = 0"));
}

TEST(RankGrid, RefusesProductsThatOverflow) {
  EXPECT_THAT(refusal([] { return RankGrid{{.tp = 65536, .cp = 65536, .dp = 1, .pp = 1}}; }),
              HasSubstr("overflows"));
  // 2^64 in all: would be 0 if it were multiplied without a check.
  EXPECT_THAT(refusal([] { return RankGrid{{.tp = 65536, .cp = 65536, .dp = 65536, .pp = 65536}}; }),
              HasSubstr("overflows"));
  EXPECT_THAT(refusal([] { return RankGrid::over_world(8, 65536, 65536, 65536); }), HasSubstr("overflows"));
}

TEST(RankGrid, RefusesUnknownAxes) {
  for (const char* axes : {"", "ep", "tp-", "-tp", "tp-tp", "tp,cp", "t"}) {
    EXPECT_THAT(refusal([axes] { return grid_of_16().groups(axes); }), HasSubstr("hyphen list")) << axes;
  }
}

}  // namespace
}  // namespace hcp
