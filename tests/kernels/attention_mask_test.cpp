// Interval masks against dense ones that are written from the definition of each mask.

#include "kernels/attention_mask.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/kernels/mask_definition.hpp"

namespace hcp::test {
namespace {

using Offsets = std::vector<std::int64_t>;
using Dense = std::vector<std::vector<bool>>;

/// Positions, one by one.
using Members = std::vector<bool>;

/// Every position with the same probability, then runs of them.
Members random_members(std::mt19937& random, std::int64_t tokens) {
  std::bernoulli_distribution starts_or_ends{std::uniform_real_distribution{0.02, 0.6}(random)};
  Members members;
  bool inside = starts_or_ends(random);
  for (std::int64_t i = 0; i < tokens; ++i) {
    inside = inside != starts_or_ends(random);
    members.push_back(inside);
  }
  return members;
}

PositionSet set_of(const Members& members) {
  std::vector<PositionRange> ranges;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i]) {
      ranges.push_back({static_cast<std::int64_t>(i), static_cast<std::int64_t>(i) + 1});
    }
  }
  return normalised(std::move(ranges));
}

/// What the two intervals hold, of `keys` positions; every key once.
Members row_of(const std::array<PositionRange, 2>& intervals, std::int64_t keys) {
  Members row(static_cast<std::size_t>(keys), false);
  for (const PositionRange& interval : intervals) {
    for (std::int64_t key = interval.begin; key < interval.end; ++key) {
      EXPECT_FALSE(row.at(static_cast<std::size_t>(key))) << "key " << key << " twice";
      row.at(static_cast<std::size_t>(key)) = true;
    }
  }
  if (!intervals[0].empty() && !intervals[1].empty()) {
    EXPECT_LE(intervals[0].end, intervals[1].begin);
  }
  return row;
}

void expect_rows(const AttentionMask& mask, const Dense& dense, std::int64_t keys) {
  for (std::size_t query = 0; query < dense.size(); ++query) {
    ASSERT_EQ(row_of(mask.visible(static_cast<std::int64_t>(query)), keys), dense[query])
        << "query " << query;
  }
  EXPECT_EQ(mask.visible(-1), (std::array<PositionRange, 2>{}));
  EXPECT_EQ(mask.visible(std::ssize(dense)), (std::array<PositionRange, 2>{}));
}

/// The pieces lie within `queries`, ascend, and hold what the rows see; between them nothing is seen.
void expect_pieces(const std::vector<MaskPiece>& pieces, PositionRange queries, const Dense& dense,
                   std::int64_t keys) {
  const Members nothing(static_cast<std::size_t>(keys), false);
  std::int64_t query = queries.begin;
  for (const MaskPiece& piece : pieces) {
    ASSERT_FALSE(piece.queries.empty());
    ASSERT_LE(query, piece.queries.begin);
    ASSERT_LE(piece.queries.end, queries.end);
    for (; query < piece.queries.begin; ++query) {
      ASSERT_EQ(dense[static_cast<std::size_t>(query)], nothing) << "query " << query << " has no piece";
    }
    for (; query < piece.queries.end; ++query) {
      for (const MovingInterval& interval : piece.keys) {
        ASSERT_EQ(interval.at(query).empty(), interval.at(piece.queries.begin).empty()) << "query " << query;
        ASSERT_LE(interval.at(query).begin, interval.at(query).end) << "query " << query;
      }
      ASSERT_EQ(row_of({piece.keys[0].at(query), piece.keys[1].at(query)}, keys),
                dense[static_cast<std::size_t>(query)])
          << "query " << query;
    }
  }
  for (; query < queries.end; ++query) {
    ASSERT_EQ(dense[static_cast<std::size_t>(query)], nothing) << "query " << query << " has no piece";
  }
}

void expect_areas(const AttentionMask& mask, const Dense& dense, const Members& queries,
                  const Members& keys) {
  std::int64_t area = 0;
  std::int64_t area_with_keys = 0;
  std::vector<std::int64_t> area_up_to{0};  // with keys, of the leading ones of `queries`
  Members seen(keys.size(), false);
  for (std::size_t query = 0; query < queries.size(); ++query) {
    for (std::size_t key = 0; key < keys.size(); ++key) {
      if (queries[query] && dense[query][key]) {
        ++area;
        area_with_keys += keys[key] ? 1 : 0;
        seen[key] = true;
      }
    }
    if (queries[query]) {
      area_up_to.push_back(area_with_keys);
    }
  }
  std::int64_t half = 0;
  while (2 * area_up_to[static_cast<std::size_t>(half)] < area_with_keys) {
    ++half;
  }
  EXPECT_EQ(mask.area(set_of(queries)), area);
  EXPECT_EQ(mask.area(set_of(queries), set_of(keys)), area_with_keys);
  EXPECT_EQ(mask.half_of_area(set_of(queries), set_of(keys)), half);
  EXPECT_EQ(mask.looked_at(set_of(queries)), set_of(seen));
}

class EveryMask : public ::testing::TestWithParam<MaskKind> {};

INSTANTIATE_TEST_SUITE_P(Attention, EveryMask, ::testing::ValuesIn(all_mask_kinds),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(EveryMask, AgreesWithItsDefinition) {
  std::mt19937 random{static_cast<unsigned>(GetParam()) + 1};
  for (int trial = 0; trial < 150; ++trial) {
    const MaskDefinition definition = random_definition(GetParam(), random, 5, 60);
    SCOPED_TRACE(text_of(definition));
    const AttentionMask mask = definition.mask();
    const Dense dense = definition.dense();
    const std::int64_t queries = definition.queries();
    const std::int64_t keys = definition.keys();
    expect_rows(mask, dense, keys);
    expect_pieces({mask.pieces().begin(), mask.pieces().end()}, {0, queries}, dense, keys);
    for (int sets = 0; sets < 5; ++sets) {
      expect_areas(mask, dense, random_members(random, queries), random_members(random, keys));
      const std::int64_t begin = std::uniform_int_distribution<std::int64_t>{0, queries}(random);
      const std::int64_t end = std::uniform_int_distribution<std::int64_t>{begin, queries}(random);
      expect_pieces(mask.pieces_within({begin, end}), {begin, end}, dense, keys);
    }
    if (HasFailure()) {
      return;
    }
  }
}

TEST_P(EveryMask, ComesBackFromItsIntervalsInNoMorePieces) {
  std::mt19937 random{static_cast<unsigned>(GetParam()) + 101};
  for (int trial = 0; trial < 50; ++trial) {
    const MaskDefinition definition = random_definition(GetParam(), random, 5, 60);
    SCOPED_TRACE(text_of(definition));
    const AttentionMask mask = definition.mask();
    std::vector<std::int64_t> bounds;
    for (std::int64_t query = 0; query < definition.queries(); ++query) {
      for (const PositionRange& range : mask.visible(query)) {
        bounds.insert(bounds.end(), {range.begin, range.end});
      }
    }
    const AttentionMask again = AttentionMask::intervals(bounds, definition.keys());
    expect_rows(again, definition.dense(), definition.keys());
    ASSERT_LE(again.pieces().size(), mask.pieces().size());
  }
}

TEST(AttentionMask, ADocumentIsAFewPieces) {
  const Offsets long_document{0, std::int64_t{1} << 30};
  EXPECT_EQ(AttentionMask::no_mask(long_document).pieces().size(), 1U);
  EXPECT_EQ(AttentionMask::causal(long_document).pieces().size(), 1U);
  EXPECT_EQ(AttentionMask::causal(long_document, {.left = 100}).pieces().size(), 2U);
  EXPECT_EQ(AttentionMask::sliding_window(long_document, {100, 100}).pieces().size(), 3U);
  EXPECT_EQ(AttentionMask::sliding_window(long_document, {0, 0}).pieces().size(), 1U);
  EXPECT_EQ(AttentionMask::prefix_lm(long_document, Offsets{77}).pieces().size(), 2U);
}

TEST(AttentionMask, PiecesWithinAreCutToTheQueries) {
  const AttentionMask mask = AttentionMask::causal(Offsets{0, 4, 4, 9, 12});
  const std::vector<MaskPiece> pieces = mask.pieces_within({2, 10});
  ASSERT_EQ(pieces.size(), 3U);
  EXPECT_EQ(pieces[0].queries, (PositionRange{2, 4}));
  EXPECT_EQ(pieces[1].queries, (PositionRange{4, 9}));
  EXPECT_EQ(pieces[2].queries, (PositionRange{9, 10}));
  EXPECT_EQ(pieces[1].keys[0].at(6), (PositionRange{4, 7}));
  EXPECT_TRUE(mask.pieces_within({12, 20}).empty());
  EXPECT_TRUE(mask.pieces_within({3, 3}).empty());
}

TEST(AttentionMask, AreasOfLongSequencesAreClosedForms) {
  constexpr std::int64_t tokens = std::int64_t{1} << 30;
  const AttentionMask mask = AttentionMask::causal(Offsets{0, tokens});
  EXPECT_EQ(mask.area({{0, tokens}}), tokens / 2 * (tokens + 1));
  EXPECT_EQ(mask.area({{0, tokens}}, {{0, tokens}}), tokens / 2 * (tokens + 1));
  EXPECT_EQ(mask.area({{0, tokens}}, {{tokens - 1, tokens}}), 1);
  EXPECT_EQ(mask.area({{0, tokens}}, {{0, 1}}), tokens);
  const AttentionMask window = AttentionMask::sliding_window(Offsets{0, tokens}, {10, 5});
  EXPECT_EQ(window.area({{0, tokens}}), 16 * tokens - 10 * 11 / 2 - 5 * 6 / 2);
  EXPECT_EQ(window.looked_at({{500, 600}}), (PositionSet{{490, 605}}));
}

TEST(AttentionMask, AWindowOfAnyWidthIsNoWindow) {
  constexpr std::int64_t widest = std::numeric_limits<std::int64_t>::max();
  const Offsets offsets{0, 3, 10};
  const AttentionMask mask = AttentionMask::sliding_window(offsets, {widest, widest});
  EXPECT_EQ(mask.area({{0, 10}}), 3 * 3 + 7 * 7);
  EXPECT_EQ(AttentionMask::causal(offsets, {.left = widest}).area({{0, 10}}), 6 + 28);
  EXPECT_EQ(AttentionMask::block_causal(offsets, widest).area({{0, 10}}), 3 * 3 + 7 * 7);
}

TEST(AttentionMask, TouchingIntervalsOfARowAreOne) {
  const AttentionMask mask = AttentionMask::intervals(Offsets{3, 5, 1, 3}, 8);
  EXPECT_EQ(mask.visible(0), (std::array<PositionRange, 2>{PositionRange{1, 5}, PositionRange{}}));
}

/// `make` must throw std::invalid_argument with all of `parts` in its text.
void expect_refused(const std::function<AttentionMask()>& make, const std::vector<std::string>& parts) {
  try {
    static_cast<void>(make());
    FAIL() << "accepted, though it should have said " << parts.front();
  } catch (const std::invalid_argument& error) {
    for (const std::string& part : parts) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr(part));
    }
  }
}

TEST(AttentionMask, RefusesOffsetsThatDoNotAscendFromZero) {
  expect_refused([] { return AttentionMask::causal(Offsets{}); }, {"offsets of the queries", "nothing", "0"});
  expect_refused([] { return AttentionMask::causal(Offsets{1, 3}); }, {"begin with 1", "at 0"});
  expect_refused([] { return AttentionMask::no_mask(Offsets{0, 3, 2}); }, {"ascend", "3 stands before 2"});
  expect_refused(
      [] {
        return AttentionMask::no_mask({Offsets{0, 3}, Offsets{0, 4, 2}});
      },
      {"offsets of the keys", "4 stands before 2"});
  expect_refused(
      [] {
        return AttentionMask::no_mask({Offsets{0, 3}, Offsets{0, 4, 5}});
      },
      {"queries of 1 documents", "keys of 2"});
  expect_refused([] { return AttentionMask::padding(Offsets{2, 3}, Offsets{1}); }, {"begin with 2"});
  expect_refused([] { return AttentionMask::block_causal(Offsets{0, 3, 1}, 2); }, {"3 stands before 1"});
}

TEST(AttentionMask, RefusesWindowsThatAreNone) {
  const Offsets offsets{0, 9};
  expect_refused([&] { return AttentionMask::sliding_window(offsets, {-2, 0}); }, {"-2,0", "-1 for all"});
  expect_refused([&] { return AttentionMask::sliding_window(offsets, {0, -7}); }, {"0,-7", "-1 for all"});
  expect_refused([&] { return AttentionMask::causal(offsets, {.left = -3}); }, {"-3,-1", "-1 for all"});
  expect_refused([&] { return AttentionMask::causal(offsets, {4, 2}); }, {"4,2", "right bound must be 0"});
  expect_refused([&] { return AttentionMask::causal_bottom_right(offsets, {4, 2}); }, {"4,2", "must be 0"});
  expect_refused(
      [&] {
        return AttentionMask::causal_bottom_right(offsets, {-2, 0});
      },
      {"-2,0", "-1 for all"});
}

TEST(AttentionMask, RefusesLengthsThatDoNotFitTheDocuments) {
  const Offsets offsets{0, 4, 9};
  using Factory = AttentionMask (*)(std::span<const std::int64_t>, std::span<const std::int64_t>);
  const std::vector<std::pair<Factory, std::string>> factories{{&AttentionMask::padding, "valid"},
                                                               {&AttentionMask::padding_causal, "valid"},
                                                               {&AttentionMask::prefix_lm, "prefix"}};
  for (const auto& [factory, what] : factories) {
    expect_refused([&] { return factory(offsets, Offsets{4}); }, {"1 " + what, "2 documents"});
    expect_refused(
        [&] {
          return factory(offsets, Offsets{4, -1});
        },
        {what + " length -1", "document 1", "0 .. 5"});
    expect_refused(
        [&] {
          return factory(offsets, Offsets{5, 5});
        },
        {what + " length 5", "document 0", "0 .. 4"});
  }
}

TEST(AttentionMask, RefusesBlocksThatAreNone) {
  expect_refused([] { return AttentionMask::block_causal(Offsets{0, 4}, 0); }, {"block size 0", "1 or more"});
  expect_refused(
      [] {
        return AttentionMask::block_diffusion(Offsets{0, 4}, -3);
      },
      {"block size -3", "1 or more"});
  expect_refused(
      [] {
        return AttentionMask::block_diffusion(Offsets{0, 4, 9}, 2);
      },
      {"row 4", "5 rows", "even"});
}

TEST(AttentionMask, RefusesIntervalsThatAreNone) {
  const auto refused = [](const Offsets& bounds, const std::vector<std::string>& parts) {
    expect_refused([&] { return AttentionMask::intervals(bounds, 10); }, parts);
  };
  refused({0, 1, 2}, {"3 mask interval bounds", "four"});
  refused({0, 1, 2, 3, -1, 2, 4, 4}, {"query row 1", "[-1, 2)", "10"});
  refused({0, 1, 2, 11}, {"query row 0", "[2, 11)", "10"});
  refused({0, 1, 11, 11}, {"query row 0", "[11, 11)", "10"});
  refused({0, 1, 5, 2}, {"query row 0", "[5, 2)", "begin <= end"});
  refused({0, 3, 2, 4}, {"query row 0", "[0, 3)", "[2, 4)", "overlap"});
  refused({2, 4, 0, 3}, {"query row 0", "[0, 3)", "[2, 4)", "overlap"});
  refused({1, 2, 1, 2}, {"query row 0", "overlap"});
}

}  // namespace
}  // namespace hcp::test
