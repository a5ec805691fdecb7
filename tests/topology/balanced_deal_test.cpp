/// Dealing pieces by weight, and what SequencePartition makes of it.
#include "topology/balanced_deal.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>

#include "topology/sequence_partition.hpp"

namespace hcp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Pieces = std::vector<WeightedPiece>;
using Ranges = std::vector<TokenRange>;

struct Held {
  std::vector<std::int64_t> tokens;  // [shard]
  std::vector<double> weights;
  int cut_pieces = 0;
};

/// Follows the parts through the pieces, token by token.
Held held_after(const Pieces& pieces, int shards) {
  std::vector<int> owner;
  for (const DealtPart& part : deal_balanced(pieces, shards)) {
    EXPECT_GT(part.tokens, 0);
    owner.insert(owner.end(), static_cast<std::size_t>(part.tokens), part.shard);
  }
  Held held{std::vector<std::int64_t>(static_cast<std::size_t>(shards), 0),
            std::vector<double>(static_cast<std::size_t>(shards), 0.0)};
  auto next = owner.begin();
  for (const WeightedPiece& piece : pieces) {
    EXPECT_LE(piece.tokens, owner.end() - next);
    held.cut_pieces += piece.tokens > 0 && std::count(next, next + piece.tokens, *next) < piece.tokens;
    for (std::int64_t token = 0; token < piece.tokens; ++token, ++next) {
      ++held.tokens.at(static_cast<std::size_t>(*next));
      held.weights.at(static_cast<std::size_t>(*next)) +=
          static_cast<double>(piece.weight) / static_cast<double>(piece.tokens);
    }
  }
  EXPECT_EQ(next, owner.end());
  return held;
}

TEST(DealBalanced, DensestFirstOntoTheLightestShardThatHasRoom) {
  // 16 tokens, 8 each. By weight per token: the third piece to shard 0, the second to shard 1, which is the
  // lighter one then; but the first piece fits only shard 0, the fourth shard 1, and the last what is left.
  const std::vector<DealtPart> dealt = deal_balanced(Pieces{{4, 4}, {6, 60}, {1, 90}, {2, 1}, {3, 0}}, 2);
  std::vector<int> shards;
  std::vector<std::int64_t> tokens;
  for (const DealtPart& part : dealt) {
    shards.push_back(part.shard);
    tokens.push_back(part.tokens);
  }
  EXPECT_THAT(tokens, ElementsAre(4, 6, 1, 2, 3));
  EXPECT_THAT(shards, ElementsAre(0, 1, 0, 1, 0));
}

TEST(DealBalanced, APieceThatFitsNowhereIsCutWhereItFillsAShard) {
  const std::vector<DealtPart> dealt = deal_balanced(Pieces{{3, 3}, {3, 3}, {3, 3}}, 2);  // 5 and 4 tokens
  ASSERT_EQ(dealt.size(), 4U);
  EXPECT_EQ(dealt[2].shard, 0);
  EXPECT_EQ(dealt[2].tokens, 2);
  EXPECT_EQ(dealt[3].shard, 1);
  EXPECT_EQ(dealt[3].tokens, 1);
}

TEST(DealBalanced, RandomPiecesFillShardsEvenlyWithFewerCutsThanShards) {
  std::mt19937 random{5};
  for (int round = 0; round < 400; ++round) {
    const int shards = 1 + static_cast<int>(random() % 9);
    Pieces pieces(random() % 40);
    std::int64_t total = 0;
    for (WeightedPiece& piece : pieces) {
      piece = {static_cast<std::int64_t>(random() % 30), static_cast<std::int64_t>(random() % 1000)};
      total += piece.tokens;
    }
    const Held held = held_after(pieces, shards);
    for (int shard = 0; shard < shards; ++shard) {
      EXPECT_EQ(held.tokens[static_cast<std::size_t>(shard)],
                total / shards + (shard < total % shards ? 1 : 0));
    }
    EXPECT_LT(held.cut_pieces, shards);
  }
}

TEST(DealBalanced, EqualPiecesThatDivideStayWholeAndWeighTheSame) {
  const Held held = held_after(Pieces(64, WeightedPiece{512, 131'328}), 8);
  EXPECT_EQ(held.cut_pieces, 0);
  EXPECT_THAT(held.tokens, testing::Each(4096));
  EXPECT_THAT(held.weights, testing::Each(testing::DoubleNear(8 * 131'328.0, 1e-6)));
}

TEST(Balanced, PiecesOfAShardAreMergedWhereTheyTouch) {
  const std::vector<std::int64_t> documents{6, 2};
  const SequencePartition partition{
      Partition::balanced, documents, 2, {.pieces = {{2, 8}, {2, 6}, {2, 2}, {2, 0}}}};
  EXPECT_EQ(partition.ranges_of(0), (Ranges{{0, 2}, {6, 8}}));
  EXPECT_EQ(partition.ranges_of(1), (Ranges{{2, 6}}));
  EXPECT_EQ(partition.place_of(7), (TokenPlace{0, 3}));
}

TEST(Balanced, RefusesPiecesThatDoNotCoverTheDocuments) {
  const auto refusal = [](const Pieces& pieces) -> std::string {
    const std::vector<std::int64_t> documents{6, 2};
    try {
      const SequencePartition partition{Partition::balanced, documents, 2, {.pieces = pieces}};
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal({{8, 1}}), "accepted");
  EXPECT_THAT(refusal({}), HasSubstr("do not cover the 8 tokens"));
  EXPECT_THAT(refusal({{6, 1}, {1, 1}}), HasSubstr("do not cover the 8 tokens"));
  EXPECT_THAT(refusal({{6, 1}, {3, 1}}), HasSubstr("do not cover the 8 tokens"));
  EXPECT_THAT(refusal({{9, 1}, {-1, 1}}), HasSubstr("a piece of -1 tokens that weighs 1"));
  EXPECT_THAT(refusal({{8, -1}}), HasSubstr("a piece of 8 tokens that weighs -1"));
}

TEST(Striped, GoldenStripesOfThree) {
  const std::vector<std::int64_t> documents{8, 3};
  const SequencePartition partition{Partition::striped, documents, 2, {.stripe_size = 3}};
  EXPECT_EQ(partition.ranges_of(0), (Ranges{{0, 3}, {6, 9}}));
  EXPECT_EQ(partition.ranges_of(1), (Ranges{{3, 6}, {9, 11}}));
}

TEST(Striped, TokensFollowTheDefinition) {
  std::mt19937 random{6};
  for (int round = 0; round < 300; ++round) {
    const int shards = 1 + static_cast<int>(random() % 9);
    const std::int64_t stripe = 1 + static_cast<std::int64_t>(random() % 12);
    std::vector<std::int64_t> documents(random() % 6);
    for (std::int64_t& length : documents) {
      length = static_cast<std::int64_t>(random() % 50);
    }
    const SequencePartition partition{Partition::striped, documents, shards, {.stripe_size = stripe}};
    ASSERT_EQ(partition.tokens(), std::accumulate(documents.begin(), documents.end(), std::int64_t{0}));
    std::vector<std::int64_t> rows(static_cast<std::size_t>(shards), 0);
    for (std::int64_t token = 0; token < partition.tokens(); ++token) {
      const auto shard = static_cast<int>(token / stripe % shards);
      EXPECT_EQ(partition.place_of(token), (TokenPlace{shard, rows[static_cast<std::size_t>(shard)]++}));
    }
    EXPECT_EQ(partition.ranges_of(0).size(),
              shards == 1
                  ? (partition.tokens() > 0 ? 1U : 0U)
                  : static_cast<std::size_t>((partition.tokens() + stripe * shards - 1) / (stripe * shards)));
  }
}

TEST(Striped, WithoutASizeStripesAreSingleTokens) {
  const std::vector<std::int64_t> documents{5};
  const SequencePartition partition{Partition::striped, documents, 2};
  EXPECT_EQ(partition.ranges_of(1), (Ranges{{1, 2}, {3, 4}}));
  EXPECT_THROW((SequencePartition{Partition::striped, documents, 2, {.stripe_size = 0}}),
               std::invalid_argument);
}

TEST(Striped, OneStripeMayBeLongerThanTheStream) {
  const std::vector<std::int64_t> documents{5};
  const SequencePartition partition{Partition::striped, documents, 3, {.stripe_size = std::int64_t{1} << 62}};
  EXPECT_EQ(partition.tokens_of(0), 5);
  EXPECT_THAT(partition.ranges_of(1), IsEmpty());
}

}  // namespace
}  // namespace hcp
