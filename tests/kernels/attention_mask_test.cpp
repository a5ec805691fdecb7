// Interval masks against dense ones that are written from the definition of each mask.

#include "kernels/attention_mask.hpp"

#include <gmock/gmock.h>

#include <random>
#include <stdexcept>
#include <vector>

namespace hcp {
namespace {

using Dense = std::vector<std::vector<bool>>;
using Offsets = std::vector<std::int64_t>;

enum class Rule { no_mask, causal };

AttentionMask mask_of(Rule rule, const Offsets& offsets) {
  return rule == Rule::causal ? AttentionMask::causal(offsets) : AttentionMask::no_mask(offsets);
}

Dense dense_mask(Rule rule, const Offsets& offsets) {
  const auto tokens = static_cast<std::size_t>(offsets.back());
  Dense dense(tokens, std::vector<bool>(tokens, false));
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    for (auto query = static_cast<std::size_t>(offsets[i]); query < static_cast<std::size_t>(offsets[i + 1]);
         ++query) {
      for (auto key = static_cast<std::size_t>(offsets[i]); key < static_cast<std::size_t>(offsets[i + 1]);
           ++key) {
        dense[query][key] = rule == Rule::no_mask || key <= query;
      }
    }
  }
  return dense;
}

Offsets random_offsets(std::mt19937& random) {
  std::uniform_int_distribution<int> documents{1, 6};
  std::uniform_int_distribution<std::int64_t> length{0, 12};
  Offsets offsets{0};
  for (int i = documents(random); i > 0; --i) {
    offsets.push_back(offsets.back() + length(random));
  }
  return offsets;
}

PositionSet random_set(std::mt19937& random, std::int64_t tokens) {
  std::bernoulli_distribution starts_or_ends{0.25};
  std::vector<PositionRange> ranges;
  bool inside = false;
  for (std::int64_t i = 0; i < tokens; ++i) {
    inside = inside != starts_or_ends(random);
    if (inside) {
      ranges.push_back({i, i + 1});
    }
  }
  return normalised(std::move(ranges));
}

bool holds(const PositionSet& set, std::int64_t position) {
  return !set_intersection(set, {{position, position + 1}}).empty();
}

TEST(AttentionMask, AgreesWithDenseMasks) {
  std::mt19937 random{3};
  for (int trial = 0; trial < 600; ++trial) {
    const Rule rule = trial % 2 == 0 ? Rule::no_mask : Rule::causal;
    const Offsets offsets = random_offsets(random);
    const std::int64_t tokens = offsets.back();
    const AttentionMask mask = mask_of(rule, offsets);
    const Dense dense = dense_mask(rule, offsets);
    const PositionSet queries = random_set(random, tokens);
    const PositionSet keys = random_set(random, tokens);

    std::int64_t area = 0;
    std::int64_t area_with_keys = 0;
    std::vector<PositionRange> seen;
    for (std::int64_t query = 0; query < tokens; ++query) {
      const auto visible = mask.visible(query);
      ASSERT_LE(visible[0].end, visible[1].empty() ? visible[0].end : visible[1].begin);
      for (std::int64_t key = 0; key < tokens; ++key) {
        const bool expected = dense[static_cast<std::size_t>(query)][static_cast<std::size_t>(key)];
        const bool in_interval = (visible[0].begin <= key && key < visible[0].end) ||
                                 (visible[1].begin <= key && key < visible[1].end);
        ASSERT_EQ(in_interval, expected) << "query " << query << " key " << key;
        if (expected && holds(queries, query)) {
          ++area;
          area_with_keys += holds(keys, key) ? 1 : 0;
          seen.push_back({key, key + 1});
        }
      }
    }
    ASSERT_EQ(mask.area(queries), area);
    ASSERT_EQ(mask.area(queries, keys), area_with_keys);
    ASSERT_EQ(mask.looked_at(queries), normalised(seen));
  }
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

TEST(AttentionMask, NothingIsVisibleOutsideTheTokens) {
  const AttentionMask mask = AttentionMask::no_mask(Offsets{0, 5});
  EXPECT_EQ(mask.visible(-1), (std::array<PositionRange, 2>{}));
  EXPECT_EQ(mask.visible(5), (std::array<PositionRange, 2>{}));
}

TEST(AttentionMask, AreasOfLongSequencesAreClosedForms) {
  constexpr std::int64_t tokens = std::int64_t{1} << 30;
  const AttentionMask mask = AttentionMask::causal(Offsets{0, tokens});
  EXPECT_EQ(mask.area({{0, tokens}}), tokens / 2 * (tokens + 1));
  EXPECT_EQ(mask.area({{0, tokens}}, {{tokens - 1, tokens}}), 1);
  EXPECT_EQ(mask.area({{0, tokens}}, {{0, 1}}), tokens);
}

TEST(AttentionMask, RefusesOffsetsThatDoNotAscendFromZero) {
  EXPECT_THROW(static_cast<void>(AttentionMask::causal(Offsets{})), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(AttentionMask::causal(Offsets{1, 3})), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(AttentionMask::no_mask(Offsets{0, 3, 2})), std::invalid_argument);
}

}  // namespace
}  // namespace hcp
