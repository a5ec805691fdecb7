/// Bytes of rings and all-gathers for lengths that divide nothing, against a count token by token.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "src/exchange/head_blocks.hpp"
#include "tests/exchange/planned_group.hpp"
#include "tests/exchange/random_plans.hpp"
#include "topology/level_digits.hpp"

namespace hcp {
namespace {

/// The levels of a rank that visit blocks, seen from one of them outwards: ranks with equal digits from there
/// on form one inner group, and what any of them looks at enters the group once.
class InnerGroups {
 public:
  explicit InnerGroups(const PlannedGroup& group) : sizes_{group.level_sizes()} {
    for (std::size_t level = 0; level < sizes_.size(); ++level) {
      if (group.geometry().levels[level].algorithm != Algorithm::a2a) {
        levels_.push_back(static_cast<int>(level));
      }
    }
  }
  [[nodiscard]] const std::vector<int>& visiting_levels() const { return levels_; }
  [[nodiscard]] std::vector<int> group_of(int cp_rank, int level) const {
    const std::vector<int> digits = level_digits(cp_rank, sizes_);
    std::vector<int> outwards;
    for (const int visiting : levels_) {
      if (visiting >= level) {
        outwards.push_back(digits[static_cast<std::size_t>(visiting)]);
      }
    }
    return outwards;
  }

 private:
  std::vector<int> sizes_;
  std::vector<int> levels_;
};

/// The CP rank that holds each token.
std::vector<int> owners(const std::vector<PositionSet>& shards, std::int64_t tokens) {
  std::vector<int> owner(static_cast<std::size_t>(tokens));
  for (std::size_t rank = 0; rank < shards.size(); ++rank) {
    for (const PositionRange& range : shards[rank]) {
      std::fill_n(owner.begin() + range.begin, range.size(), static_cast<int>(rank));
    }
  }
  return owner;
}

struct Tokens {
  std::vector<int> owner_of_query;
  std::vector<int> owner_of_key;
  std::vector<std::vector<bool>> sees;  ///< [query][key]
};

/// Pairs of a key and an inner group of `level` that looks at it and lies in another place of that level than
/// its owner.
std::int64_t lent_rows(const Tokens& tokens, const InnerGroups& groups, int level) {
  std::int64_t rows = 0;
  for (std::size_t key = 0; key < tokens.owner_of_key.size(); ++key) {
    const int own_place = groups.group_of(tokens.owner_of_key[key], level).front();
    std::set<std::vector<int>> lookers;
    for (std::size_t query = 0; query < tokens.owner_of_query.size(); ++query) {
      if (tokens.sees[query][key]) {
        lookers.insert(groups.group_of(tokens.owner_of_query[query], level));
      }
    }
    rows += std::ranges::count_if(lookers, [&](const auto& group) { return group.front() != own_place; });
  }
  return rows;
}

/// KV heads that the members of a head swap hold, counted as often as they are held.
std::int64_t kv_heads_held(Heads heads, int swap_members) {
  std::int64_t held = 0;
  for (int member = 0; member < swap_members; ++member) {
    held += kv_heads_of(query_heads_of(member, swap_members, heads.q), heads.q / heads.kv).count();
  }
  return held;
}

TEST(LookedAtBytes, EveryLevelMovesARowToEachGroupThatLooksAtIt) {
  RandomPlans random{3};
  int moving_levels = 0;
  for (int round = 0; round < 120; ++round) {
    const std::vector<Level> levels = random.levels(3, 16);
    const test::MaskDefinition mask = random.mask(40);
    const Partition partition = random.partition();
    const Heads heads = random.one_of(std::vector<Heads>{{28, 7}, {16, 16}, {25, 1}});
    constexpr HeadDims dims{16, 24};
    const PlannedGroup group{levels, mask, heads, partition, DataType::bf16, DataType::fp32, dims};
    SCOPED_TRACE(group.describe());

    const InnerGroups groups{group};
    const Tokens tokens{owners(group.geometry().shards, mask.queries()),
                        owners(group.geometry().kv_shards, mask.keys()), mask.dense()};
    const std::int64_t row_elements = kv_heads_held(heads, Scheme{levels}.a2a_size()) * (dims.qk + dims.v);
    for (const int level : groups.visiting_levels()) {
      const std::int64_t rows = lent_rows(tokens, groups, level);
      EXPECT_EQ(group.level_bytes(Pass::forward, level, {Payload::kv}), rows * row_elements * 2);
      EXPECT_EQ(group.level_bytes(Pass::backward, level, {Payload::kv}), rows * row_elements * 2);
      EXPECT_EQ(group.level_bytes(Pass::backward, level, {Payload::dkv}), rows * row_elements * 4);
      moving_levels += rows > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(moving_levels, 80);
}

}  // namespace
}  // namespace hcp
