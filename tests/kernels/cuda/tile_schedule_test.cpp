// Schedules of tiles against all pairs of rows and keys, one at a time.

#include "kernels/cuda/tile_schedule.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <string>
#include <tuple>

#include "kernels/row_keys.hpp"
#include "tests/kernels/mask_definition.hpp"

namespace hcp::cuda {
namespace {

using test::MaskDefinition;

/// (owner, visited, full) of every visit.
using Visits = std::vector<std::tuple<std::int32_t, std::int32_t, bool>>;

using Pairs = std::vector<std::vector<bool>>;  // [rows][keys]

Pairs pairs_of(std::span<const RowKeys> row_keys, std::int32_t keys) {
  Pairs pairs(row_keys.size(), std::vector<bool>(static_cast<std::size_t>(keys)));
  for (std::size_t row = 0; row < row_keys.size(); ++row) {
    for (const int i : {0, 1}) {
      for (std::int32_t key = row_keys[row].begin[i]; key < row_keys[row].end[i]; ++key) {
        pairs[row][static_cast<std::size_t>(key)] = true;
      }
    }
  }
  return pairs;
}

/// By counting the visible pairs of every pair of tiles; owner is the query tile.
Visits expected_visits(const Pairs& pairs, std::int32_t keys, TileRows tile) {
  const auto rows = static_cast<std::int32_t>(pairs.size());
  Visits visits;
  for (std::int32_t query_tile = 0; query_tile * tile.queries < rows; ++query_tile) {
    for (std::int32_t key_tile = 0; key_tile * tile.keys < keys; ++key_tile) {
      int visible = 0;
      for (int row = query_tile * tile.queries; row < std::min(rows, (query_tile + 1) * tile.queries);
           ++row) {
        for (int key = key_tile * tile.keys; key < std::min(keys, (key_tile + 1) * tile.keys); ++key) {
          visible += pairs[static_cast<std::size_t>(row)][static_cast<std::size_t>(key)] ? 1 : 0;
        }
      }
      if (visible > 0) {
        visits.emplace_back(query_tile, key_tile, visible == tile.queries * tile.keys);
      }
    }
  }
  return visits;
}

/// In the order of owners; expects the order that is promised.
Visits visits_of(const TileScheduleData& schedule) {
  const auto count = [](const TileWork& work) { return work.end - work.begin; };
  std::vector<TileWork> work = schedule.work;
  EXPECT_TRUE(std::ranges::is_sorted(work, [&](const TileWork& a, const TileWork& b) {
    return std::tuple{-count(a), a.tile} < std::tuple{-count(b), b.tile};
  }));
  std::ranges::sort(work, {}, &TileWork::tile);
  Visits visits;
  for (const TileWork& own : work) {
    EXPECT_LT(own.begin, own.end);
    for (std::int32_t i = own.begin; i < own.end; ++i) {
      const TileVisit& visit = schedule.visits.at(static_cast<std::size_t>(i));
      visits.emplace_back(own.tile, visit.tile, visit.full == 1);
    }
  }
  EXPECT_EQ(visits.size(), schedule.visits.size());
  EXPECT_TRUE(std::ranges::is_sorted(visits));
  return visits;
}

Visits swapped(const Visits& visits) {
  Visits other;
  for (const auto& [owner, visited, full] : visits) {
    other.emplace_back(visited, owner, full);
  }
  std::ranges::sort(other);
  return other;
}

void expect_schedules(std::span<const RowKeys> row_keys, std::int32_t keys, TileRows tile,
                      const std::string& what) {
  SCOPED_TRACE(what + ", tiles of " + std::to_string(tile.queries) + " queries and " +
               std::to_string(tile.keys) + " keys");
  const Visits expected = expected_visits(pairs_of(row_keys, keys), keys, tile);
  EXPECT_EQ(visits_of(query_tile_schedule(row_keys, tile)), expected);
  EXPECT_EQ(visits_of(key_tile_schedule(row_keys, keys, tile)), swapped(expected));
}

/// Some ranges of 0 .. tokens - 1.
PositionSet random_positions(std::int64_t tokens, std::mt19937& random) {
  std::vector<PositionRange> ranges;
  for (std::int64_t begin = 0; begin < tokens;) {
    const std::int64_t size = 1 + static_cast<std::int64_t>(random() % 30);
    if (random() % 3 != 0) {
      ranges.push_back({begin, std::min(begin + size, tokens)});
    }
    begin += size;
  }
  return normalised(std::move(ranges));
}

TEST(TileSchedule, EqualsTheCountOfVisiblePairs) {
  std::mt19937 random{11};
  constexpr TileRows tiles[] = {{16, 16}, {8, 32}, {32, 8}, {1, 1}};
  for (const test::MaskKind kind : test::all_mask_kinds) {
    for (int repeat = 0; repeat < 12; ++repeat) {
      const MaskDefinition definition = test::random_definition(kind, random, 4, 60);
      const PositionSet queries = random_positions(definition.queries(), random);
      const PositionSet keys = random_positions(definition.keys(), random);
      const std::vector<RowKeys> row_keys = row_keys_of(definition.mask(), queries, keys);
      for (const TileRows& tile : tiles) {
        expect_schedules(row_keys, static_cast<std::int32_t>(count_of(keys)), tile, text_of(definition));
      }
    }
  }
}

TEST(TileSchedule, OfIntervalsThatTouchIsThatOfOne) {
  const std::vector<RowKeys> rows(4, {{0, 6}, {6, 16}});  // tile 1 is seen whole, by two intervals
  expect_schedules(rows, 16, {4, 4}, "touching intervals");
}

TEST(TileSchedule, ATileThatEndsEarlyIsNotFull) {
  const std::vector<RowKeys> rows(6, {{0, 0}, {6, 0}});
  const TileScheduleData schedule = query_tile_schedule(rows, {4, 4});
  EXPECT_EQ(visits_of(schedule), (Visits{{0, 0, true}, {0, 1, false}, {1, 0, false}, {1, 1, false}}));
}

TEST(TileSchedule, OfNothingIsEmpty) {
  EXPECT_TRUE(query_tile_schedule({}, {16, 16}).work.empty());
  EXPECT_TRUE(key_tile_schedule({}, 0, {16, 16}).work.empty());
  const std::vector<RowKeys> blind(20, RowKeys{{0, 0}, {0, 0}});
  EXPECT_TRUE(query_tile_schedule(blind, {16, 16}).work.empty());
  EXPECT_TRUE(key_tile_schedule(blind, 20, {16, 16}).visits.empty());
}

TEST(TileSchedule, PutsMostWorkFirst) {
  std::vector<RowKeys> rows;
  for (std::int32_t row = 0; row < 64; ++row) {
    rows.push_back({{0, 0}, {row + 1, 0}});
  }
  std::vector<std::int32_t> order;
  for (const TileWork& work : query_tile_schedule(rows, {16, 16}).work) {
    order.push_back(work.tile);
  }
  EXPECT_THAT(order, testing::ElementsAre(3, 2, 1, 0));
  order.clear();
  for (const TileWork& work : key_tile_schedule(rows, 64, {16, 16}).work) {
    order.push_back(work.tile);
  }
  EXPECT_THAT(order, testing::ElementsAre(0, 1, 2, 3));
}

}  // namespace
}  // namespace hcp::cuda
