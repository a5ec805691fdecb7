// Set arithmetic of position ranges against std::set of single positions.

#include "kernels/position_ranges.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <set>
#include <stdexcept>

namespace hcp {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Positions = std::set<std::int64_t>;

Positions positions_in(const std::vector<PositionRange>& ranges) {
  Positions positions;
  for (const PositionRange range : ranges) {
    for (std::int64_t i = range.begin; i < range.end; ++i) {
      positions.insert(i);
    }
  }
  return positions;
}

PositionSet ranges_of(const Positions& positions) {
  PositionSet set;
  for (const std::int64_t i : positions) {
    if (!set.empty() && set.back().end == i) {
      ++set.back().end;
    } else {
      set.push_back({i, i + 1});
    }
  }
  return set;
}

std::vector<PositionRange> random_ranges(std::mt19937& random) {
  std::uniform_int_distribution<int> count{0, 6};
  std::uniform_int_distribution<std::int64_t> place{0, 40};
  std::uniform_int_distribution<std::int64_t> length{-1, 9};
  std::vector<PositionRange> ranges(static_cast<std::size_t>(count(random)));
  for (PositionRange& range : ranges) {
    range.begin = place(random);
    range.end = range.begin + length(random);
  }
  return ranges;
}

TEST(PositionRanges, SetArithmeticAgreesWithSetsOfPositions) {
  std::mt19937 random{1};
  for (int i = 0; i < 2000; ++i) {
    const auto raw_a = random_ranges(random);
    const auto raw_b = random_ranges(random);
    const Positions a = positions_in(raw_a);
    const Positions b = positions_in(raw_b);
    Positions both, common, rest;
    std::ranges::set_union(a, b, std::inserter(both, both.end()));
    std::ranges::set_intersection(a, b, std::inserter(common, common.end()));
    std::ranges::set_difference(a, b, std::inserter(rest, rest.end()));

    const PositionSet set_a = normalised(raw_a);
    const PositionSet set_b = normalised(raw_b);
    ASSERT_EQ(set_a, ranges_of(a));
    ASSERT_EQ(set_union(set_a, set_b), ranges_of(both));
    ASSERT_EQ(set_intersection(set_a, set_b), ranges_of(common));
    ASSERT_EQ(set_difference(set_a, set_b), ranges_of(rest));
    ASSERT_EQ(count_of(set_a), static_cast<std::int64_t>(a.size()));
  }
}

TEST(PositionRanges, RowsAndPositionsAreInverse) {
  std::mt19937 random{2};
  for (int i = 0; i < 2000; ++i) {
    const PositionSet whole = normalised(random_ranges(random));
    const PositionSet part = set_intersection(whole, normalised(random_ranges(random)));
    const std::vector<RowSpan> rows = rows_of(part, whole);

    Positions found;
    std::int64_t last_end = -1;
    for (const RowSpan span : rows) {
      ASSERT_GT(span.first, last_end) << "spans must be merged where adjacent";
      last_end = span.first + span.count;
      ASSERT_EQ(count_of(positions_of(span, whole)), span.count);
      found.merge(positions_in(positions_of(span, whole)));
    }
    ASSERT_EQ(ranges_of(found), part);
  }
}

TEST(PositionRanges, RowsOfAPartWithHoles) {
  const PositionSet whole{{10, 14}, {20, 22}, {30, 35}};
  EXPECT_THAT(rows_of({{12, 14}, {20, 21}, {31, 33}}, whole), ElementsAre(RowSpan{2, 3}, RowSpan{7, 2}));
  EXPECT_THAT(positions_of({3, 4}, whole),
              ElementsAre(PositionRange{13, 14}, PositionRange{20, 22}, PositionRange{30, 31}));
  EXPECT_THAT(rows_of({}, whole), IsEmpty());
}

TEST(PositionRanges, RefusesWhatTheTensorDoesNotHold) {
  const PositionSet whole{{10, 14}, {20, 22}};
  EXPECT_THROW(static_cast<void>(rows_of({{9, 11}}, whole)), std::logic_error);
  EXPECT_THROW(static_cast<void>(rows_of({{12, 15}}, whole)), std::logic_error);
  EXPECT_THROW(static_cast<void>(rows_of({{12, 21}}, whole)), std::logic_error);
  EXPECT_THROW(static_cast<void>(rows_of({{22, 23}}, whole)), std::logic_error);
  EXPECT_THROW(static_cast<void>(positions_of({0, 7}, whole)), std::logic_error);
  EXPECT_THROW(static_cast<void>(positions_of({-1, 2}, whole)), std::logic_error);
}

}  // namespace
}  // namespace hcp
