/// The exchange plan without any ranks: bytes against the closed formulas, both ends of every message,
/// memory.
#include "src/exchange/exchange_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "src/exchange/head_blocks.hpp"
#include "src/exchange/plan_memory.hpp"
#include "tests/exchange/planned_group.hpp"
#include "tests/exchange/random_plans.hpp"
#include "topology/level_digits.hpp"

namespace hcp {
namespace {

constexpr Algorithm p2p = Algorithm::p2p;
constexpr Algorithm gather = Algorithm::all_gather;
constexpr Algorithm a2a = Algorithm::a2a;

constexpr std::int64_t dim = 16;
constexpr std::int64_t storage_bytes = 2;   // bf16
constexpr std::int64_t gradient_bytes = 4;  // fp32

// formulas.md's tau times the ranks: bytes of one head of all tokens.
constexpr std::int64_t head_bytes(std::int64_t tokens, std::int64_t element = storage_bytes) {
  return tokens * dim * element;
}

// --- Closed formulas, dense mask, lengths that divide. Sums over all ranks of what one rank sends. ---

TEST(ExchangeBytes, FlatRingAndAllGatherMoveEveryBlockToEveryOtherRank) {
  for (const Algorithm algorithm : {p2p, gather}) {
    for (const int ranks : {2, 3, 4, 8}) {
      const std::int64_t tokens = 16 * 2 * ranks;
      const PlannedGroup group{{{algorithm, ranks}}, {tokens}, false, {8, 2}};
      EXPECT_EQ(group.bytes(Pass::forward), (ranks - 1) * 2 * 2 * head_bytes(tokens));
      EXPECT_EQ(group.bytes(Pass::backward, {Payload::kv}), (ranks - 1) * 2 * 2 * head_bytes(tokens));
      EXPECT_EQ(group.bytes(Pass::backward, {Payload::dkv}),
                (ranks - 1) * 2 * 2 * head_bytes(tokens, gradient_bytes));
      EXPECT_EQ(group.messages(Pass::forward), ranks * (ranks - 1));
      EXPECT_EQ(group.messages(Pass::backward), 2 * ranks * (ranks - 1));
    }
  }
}

TEST(ExchangeBytes, HeadSwapMovesAllButTheOwnShareTwice) {
  // 28:7 on 2 ranks: KV head 3 is used by both, so the members hold 8 KV heads together. MQA: everybody holds
  // the one.
  struct Case {
    int ranks;
    Heads heads;
    std::int64_t kv_held;    // by all members together
    std::int64_t kv_shared;  // of those, how many are copies that others hold too
  };
  for (const Case& c : {Case{4, {8, 8}, 8, 0}, Case{4, {8, 4}, 4, 0}, Case{8, {8, 2}, 8, 8},
                        Case{2, {28, 7}, 8, 2}, Case{4, {8, 1}, 4, 4}, Case{3, {8, 8}, 8, 0}}) {
    const std::int64_t tokens = 16 * 2 * c.ranks;
    const PlannedGroup group{{{a2a, c.ranks}}, {tokens}, false, c.heads};
    // A rank sends its rows to each of the others, so every held head travels from (ranks - 1) / ranks of the
    // tokens.
    const std::int64_t others = c.ranks - 1;
    const std::int64_t share = head_bytes(tokens) / c.ranks * others;
    const std::int64_t gradient_share = head_bytes(tokens, gradient_bytes) / c.ranks * others;
    EXPECT_EQ(group.bytes(Pass::forward), share * (2 * c.heads.q + 2 * c.kv_held));
    EXPECT_EQ(group.bytes(Pass::backward),
              share * (2 * c.heads.q + 2 * (c.kv_held - c.kv_shared)) + gradient_share * 2 * c.kv_shared);
    EXPECT_EQ(group.messages(Pass::forward), 2 * c.ranks * others);
    EXPECT_EQ(group.messages(Pass::backward), 2 * c.ranks * others);
  }
}

TEST(ExchangeBytes, RingInTheNodeAndHeadSwapAcross) {
  for (const auto& [inner, outer] : std::vector<std::pair<int, int>>{{2, 2}, {4, 2}, {2, 4}, {3, 2}}) {
    const int ranks = inner * outer;
    const std::int64_t tokens = 16 * 2 * ranks;
    const PlannedGroup group{{{p2p, inner}, {a2a, outer}}, {tokens}, false, {8, 8}};
    EXPECT_EQ(group.level_bytes(Pass::forward, 1), head_bytes(tokens) / outer * (outer - 1) * 2 * (8 + 8));
    EXPECT_EQ(group.level_bytes(Pass::forward, 0), (inner - 1) * 2 * 8 * head_bytes(tokens));
    EXPECT_EQ(group.level_bytes(Pass::backward, 1), head_bytes(tokens) / outer * (outer - 1) * 2 * (8 + 8));
    EXPECT_EQ(group.level_bytes(Pass::backward, 0),
              (inner - 1) * 2 * 8 * (head_bytes(tokens) + head_bytes(tokens, gradient_bytes)));
  }
}

TEST(ExchangeBytes, HeadSwapInTheNodeAndRingAcrossIsTransformerEngines) {
  for (const auto& [inner, outer] : std::vector<std::pair<int, int>>{{2, 2}, {4, 2}, {2, 4}}) {
    const std::int64_t tokens = 16 * 2 * inner * outer;
    const PlannedGroup group{{{a2a, inner}, {p2p, outer}}, {tokens}, false, {8, 8}};
    EXPECT_EQ(group.level_bytes(Pass::forward, 0), head_bytes(tokens) / inner * (inner - 1) * 2 * (8 + 8));
    EXPECT_EQ(group.level_bytes(Pass::forward, 1), (outer - 1) * 2 * 8 * head_bytes(tokens));
  }
}

TEST(ExchangeBytes, DoubleRingMovesWhatAFlatRingMovesButLessOfItAcross) {
  const std::int64_t tokens = 16 * 2 * 8;
  for (const Algorithm inner : {p2p, gather}) {
    for (const Algorithm outer : {p2p, gather}) {
      const PlannedGroup group{{{inner, 4}, {outer, 2}}, {tokens}, false, {4, 4}};
      // Across: each block once into the other node. Inside: every block of both nodes to the three other
      // ranks.
      EXPECT_EQ(group.level_bytes(Pass::forward, 1), (2 - 1) * 2 * 4 * head_bytes(tokens));
      EXPECT_EQ(group.level_bytes(Pass::forward, 0), 2 * (4 - 1) * 2 * 4 * head_bytes(tokens));
      EXPECT_EQ(group.bytes(Pass::forward), 7 * 2 * 4 * head_bytes(tokens));
    }
  }
}

TEST(ExchangeBytes, CausalMovesThreeQuartersZigzagAndHalfContiguous) {
  for (const Algorithm algorithm : {p2p, gather}) {
    const std::int64_t tokens = 16 * 2 * 8;
    for (const std::vector<Level>& levels :
         std::vector<std::vector<Level>>{{{algorithm, 8}},
                                         {{algorithm, 4}, {algorithm, 2}},
                                         {{algorithm, 2}, {a2a, 4}},
                                         {{a2a, 2}, {algorithm, 2}, {p2p, 2}},
                                         {{gather, 2}, {algorithm, 2}, {p2p, 2}}}) {
      for (const Pass pass : {Pass::forward, Pass::backward}) {
        const PlannedGroup dense{levels, {tokens}, false, {4, 4}};
        const PlannedGroup zigzag{levels, {tokens}, true, {4, 4}};
        const PlannedGroup contiguous{levels, {tokens}, true, {4, 4}, Partition::contiguous};
        for (int level = 0; level < static_cast<int>(levels.size()); ++level) {
          const auto moved = [&](const PlannedGroup& group) {
            return group.level_bytes(pass, level, {Payload::kv, Payload::dkv});
          };
          EXPECT_EQ(moved(dense) > 0, levels[static_cast<std::size_t>(level)].algorithm != a2a);
          EXPECT_EQ(moved(zigzag) * 4, moved(dense) * 3);
          EXPECT_EQ(moved(contiguous) * 2, moved(dense));
        }
      }
    }
  }
}

TEST(ExchangeBytes, AWindowUpToAShardMovesOneEdgePerSide) {
  constexpr std::int64_t shard = 32;
  for (const Algorithm algorithm : {p2p, gather}) {
    for (const int ranks : {2, 3, 4, 8}) {
      for (const Window window : {Window{shard, 0}, Window{5, 7}, Window{0, shard}}) {
        const test::MaskDefinition mask{
            .kind = test::MaskKind::sliding_window, .doc_lengths = {shard * ranks}, .window = window};
        const PlannedGroup group{{{algorithm, ranks}}, mask, {4, 2}, Partition::contiguous};
        const std::int64_t edges = (ranks - 1) * (window.left + window.right);
        EXPECT_EQ(group.bytes(Pass::forward), 2 * 2 * head_bytes(edges));
        EXPECT_EQ(group.bytes(Pass::backward),
                  2 * 2 * (head_bytes(edges) + head_bytes(edges, gradient_bytes)));
        const int sides = (window.left > 0 ? 1 : 0) + (window.right > 0 ? 1 : 0);
        EXPECT_EQ(group.messages(Pass::forward), sides * (ranks - 1));
        EXPECT_EQ(group.messages(Pass::backward), 2 * sides * (ranks - 1));
      }
    }
  }
}

TEST(ExchangeBytes, KeysThatAreOtherTokensThanQueriesTravelAsKeys) {
  for (const int ranks : {2, 4}) {
    const std::int64_t queries = 32 * ranks;
    for (const std::int64_t keys : {queries / 2, 3 * queries}) {
      const test::MaskDefinition mask{
          .kind = test::MaskKind::no_mask, .doc_lengths = {queries}, .kv_doc_lengths = {keys}};
      for (const Algorithm algorithm : {p2p, gather}) {
        const PlannedGroup group{{{algorithm, ranks}}, mask, {8, 2}};
        EXPECT_EQ(group.bytes(Pass::forward), (ranks - 1) * 2 * 2 * head_bytes(keys));
        EXPECT_EQ(group.bytes(Pass::backward, {Payload::dkv}),
                  (ranks - 1) * 2 * 2 * head_bytes(keys, gradient_bytes));
      }
      const PlannedGroup swapped{{{a2a, ranks}}, mask, {8, 8}};
      const std::int64_t travelling_heads = 2 * 8 * (ranks - 1);
      EXPECT_EQ(swapped.bytes(Pass::forward), travelling_heads * head_bytes(queries + keys) / ranks);
      EXPECT_EQ(swapped.bytes(Pass::backward), travelling_heads * head_bytes(queries + keys) / ranks);
    }
  }
}

TEST(ExchangeBytes, KeysThatNobodyLooksAtAreNotSwapped) {
  // Four queries, 64 keys: a causal query sees the keys up to its own place.
  const test::MaskDefinition mask{.kind = test::MaskKind::causal, .doc_lengths = {4}, .kv_doc_lengths = {64}};
  const PlannedGroup group{{{a2a, 2}}, mask, {8, 8}, Partition::contiguous};
  // Out of two rows of each rank, half of the heads; the looked-at keys lie on rank 0 alone.
  EXPECT_EQ(group.bytes(Pass::forward, {Payload::qkv}), 4 * (head_bytes(4) + 2 * head_bytes(4)));
  EXPECT_EQ(group.bytes(Pass::backward, {Payload::dqkv}), 4 * (head_bytes(4) + 2 * head_bytes(4)));
}

TEST(ExchangeBytes, DocumentsThatStayWholeMoveNothing) {
  for (const Algorithm algorithm : {p2p, gather}) {
    const PlannedGroup group{{{algorithm, 4}}, {32, 32, 32, 32}, false, {4, 4}, Partition::contiguous};
    EXPECT_EQ(group.bytes(Pass::forward), 0);
    EXPECT_EQ(group.messages(Pass::backward), 0);
  }
}

TEST(ExchangeBytes, HeadSwapOverTwoLevelsIsOneSwapBookedWhereRanksDiffer) {
  const std::int64_t tokens = 16 * 2 * 4;
  const PlannedGroup joined{{{a2a, 2}, {a2a, 2}}, {tokens}, false, {8, 8}};
  const PlannedGroup flat{{{a2a, 4}}, {tokens}, false, {8, 8}};
  EXPECT_EQ(joined.bytes(Pass::forward), flat.bytes(Pass::forward));
  EXPECT_EQ(joined.messages(Pass::forward), flat.messages(Pass::forward));
  EXPECT_EQ(joined.level_bytes(Pass::forward, 1), 2 * joined.level_bytes(Pass::forward, 0));
}

// --- Sizes that overflow an int: one head of 2^31 and more bytes per message. ---

TEST(ExchangeBytes, MessagesOverTwoGibibytesAreCountedRight) {
  const std::int64_t tokens = std::int64_t{1} << 26;
  for (const Algorithm algorithm : {p2p, gather, a2a}) {
    const PlannedGroup group{{{algorithm, 2}}, {tokens}, true, {32, 32}};
    std::int64_t largest = 0;
    group.for_each_send(Pass::forward,
                        [&](const PlannedMessage& m) { largest = std::max(largest, m.bytes()); });
    // Causal zigzag over two ranks: one looks at all of the other's block, and with swapped heads everybody
    // at all rows.
    const __int128 rows = tokens / 2;
    const __int128 elements = algorithm == a2a ? rows * 16 * dim * 3 : rows * 32 * dim * 2;
    EXPECT_GT(largest, std::int64_t{1} << 31);
    EXPECT_TRUE(static_cast<__int128>(largest) == elements * storage_bytes) << largest;
  }
}

// --- Both ends agree. ---

using Stream = std::vector<std::tuple<Payload, std::int64_t>>;

void expect_ends_match(const PlannedGroup& group) {
  const std::vector<int> sizes = group.level_sizes();
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    std::map<std::tuple<int, int, std::vector<int>>, Stream>
        sent;  // (from, to, communicator) -> messages in order
    std::map<std::tuple<int, int, std::vector<int>>, Stream> received;
    for (int rank = 0; rank < static_cast<int>(group.plans.size()); ++rank) {
      const ExchangePlan& plan = group.plans[static_cast<std::size_t>(rank)];
      for (const Transfer& transfer : plan.program(pass).transfers) {
        const std::vector<int>& levels =
            plan.communicators.at(static_cast<std::size_t>(transfer.communicator));
        const std::vector<int> members =
            level_groups(sizes, levels).at(static_cast<std::size_t>(level_place(rank, sizes, levels).group));
        for (const PlannedMessage& m : transfer.sends) {
          EXPECT_EQ(members.at(static_cast<std::size_t>(m.peer)), m.peer_cp_rank);
          EXPECT_NE(m.peer_cp_rank, rank);
          EXPECT_GT(m.bytes(), 0);
          sent[{rank, m.peer_cp_rank, levels}].emplace_back(m.payload, m.bytes());
        }
        for (const PlannedMessage& m : transfer.receives) {
          received[{m.peer_cp_rank, rank, levels}].emplace_back(m.payload, m.bytes());
        }
      }
    }
    EXPECT_EQ(sent, received);
  }
}

TEST(ExchangePlan, EverySentMessageIsReceivedInOrder) {
  RandomPlans random{7};
  for (int round = 0; round < 60; ++round) {
    const std::vector<Level> levels = random.levels(3, 12);
    const Partition partition = random.partition();
    const PlannedGroup group{levels, random.mask(60), {28, 7}, partition};
    SCOPED_TRACE(group.describe());
    expect_ends_match(group);
  }
}

// --- Memory at fixed tokens per rank. ---

MemoryPeaks peaks_of(const PlannedGroup& group) {
  MemoryPeaks largest;
  for (const ExchangePlan& plan : group.plans) {
    const ExchangePlan* const layer = &plan;
    const MemoryPeaks peaks = planned_memory({&layer, 1}, PassSelection::both);
    largest.total = std::max(largest.total, peaks.total);
    for (std::size_t c = 0; c < memory_categories; ++c) {
      largest.by_category[c] = std::max(largest.by_category[c], peaks.by_category[c]);
    }
  }
  return largest;
}

/// Peak of the fullest rank with rings of 3 to 8 ranks.
std::vector<std::int64_t> peaks_over_rings(bool causal, bool hierarchical) {
  constexpr std::int64_t tokens_per_rank = 96;
  std::vector<std::int64_t> totals;
  for (int ring = 3; ring <= 8; ++ring) {
    std::vector<Level> levels{{p2p, ring}};
    if (hierarchical) {
      levels.push_back({a2a, 2});
    }
    totals.push_back(
        peaks_of(PlannedGroup{levels, {tokens_per_rank * Scheme{levels}.size()}, causal, {8, 8}}).total);
  }
  return totals;
}

TEST(ExchangeMemory, RingsOfThreeAndMoreNeedTheSameAtFixedTokensPerRank) {
  for (const bool hierarchical : {false, true}) {
    EXPECT_THAT(peaks_over_rings(false, hierarchical),
                testing::Each(peaks_over_rings(false, hierarchical).front()));
  }
}

TEST(ExchangeMemory, CausalRingsOfThreeNeedLessAndLongerOnesTheSame) {
  // In a causal ring of three no rank looks at all of two other blocks and gets a whole one back, in longer
  // ones some do.
  for (const bool hierarchical : {false, true}) {
    const std::vector<std::int64_t> peaks = peaks_over_rings(true, hierarchical);
    EXPECT_LT(peaks.front(), peaks.back());
    EXPECT_THAT(std::vector(peaks.begin() + 1, peaks.end()), testing::Each(peaks.back()));
    EXPECT_EQ(peaks.back(), peaks_over_rings(false, hierarchical).back());
  }
}

TEST(ExchangeMemory, ARingOfTwoHoldsOneBorrowedBlockAndLongerRingsTwo) {
  const auto kv_ring = [](int ring) {
    return peaks_of(PlannedGroup{{{p2p, ring}}, {96 * ring}, false, {8, 8}})
        .by_category[static_cast<std::size_t>(MemoryCategory::kv_ring)];
  };
  const std::int64_t block = 2 * 8 * head_bytes(96);
  EXPECT_EQ(kv_ring(2), block);
  EXPECT_EQ(kv_ring(3), 2 * block);
  EXPECT_EQ(kv_ring(8), 2 * block);
}

TEST(ExchangeMemory, AllGatherGrowsWithTheSequence) {
  const auto gathered = [](int ranks) {
    return peaks_of(PlannedGroup{{{gather, ranks}}, {96 * ranks}, false, {8, 8}})
        .by_category[static_cast<std::size_t>(MemoryCategory::gathered)];
  };
  // The fp32 gradient of KV of all ranks, and what arrives from the others. Gathered KV (bf16) is freed
  // before that.
  const auto expected = [](int ranks) { return 2 * 8 * head_bytes(96, gradient_bytes) * (2 * ranks - 1); };
  EXPECT_EQ(gathered(4), expected(4));
  EXPECT_EQ(gathered(8), expected(8));
}

// --- Heads ---

TEST(HeadBlocks, QueryHeadsAreDealtEvenlyAndKvHeadsFollow) {
  EXPECT_EQ(query_heads_of(0, 3, 8).count(), 3);
  EXPECT_EQ(query_heads_of(2, 3, 8).begin, 6);
  EXPECT_EQ(query_heads_of(2, 3, 8).end, 8);
  const SharedHeads first = shared_heads_of(0, 2, 28, 4);
  EXPECT_EQ(first.all.begin, 0);
  EXPECT_EQ(first.all.end, 4);
  EXPECT_EQ(first.final.end, 3);  // KV head 3 serves query heads 12..15, so both members
  const SharedHeads second = shared_heads_of(1, 2, 28, 4);
  EXPECT_EQ(second.all.begin, 3);
  EXPECT_EQ(second.final.begin, 4);
}

TEST(HeadBlocks, FortyQueryHeadsOverEightKvHeadsOnFortyRanks) {
  const PlannedGroup group{{{a2a, 40}}, {400}, true, {40, 8}};
  for (const ExchangePlan& plan : group.plans) {
    EXPECT_EQ(plan.heads_q, 1);
    EXPECT_EQ(plan.head_map.first_kv_head, plan.first_head_q / 5);
  }
  expect_ends_match(group);
}

TEST(ExchangePlan, MoreSwapMembersThanQueryHeadsAreRefused) {
  EXPECT_THROW((PlannedGroup{{{a2a, 8}}, {64}, false, {4, 4}}), std::invalid_argument);
}

TEST(ExchangePlan, ShardsOfQueriesAndOfKeysAreNeededFromEveryRank) {
  const PlannedGroup group{{{p2p, 2}}, {64}, false, {4, 4}};
  LayerGeometry geometry = group.geometry();
  geometry.kv_shards.pop_back();
  try {
    static_cast<void>(make_exchange_plan(geometry, 0));
    FAIL() << "nothing was refused";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "the level sizes make 2 ranks, but there are 1 shards of keys");
  }
}

TEST(ExchangePlan, OneRankNeedsNoCommunicator) {
  const PlannedGroup group{{}, {64}, false, {4, 4}};
  EXPECT_TRUE(group.plans.front().communicators.empty());
  EXPECT_EQ(group.messages(Pass::backward), 0);
}

}  // namespace
}  // namespace hcp
