/// Plans whose messages are contiguous, and gathers that are collectives, against the plans of the host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "src/exchange/plan_memory.hpp"
#include "tests/exchange/planned_group.hpp"
#include "tests/exchange/random_plans.hpp"

namespace hcp {
namespace {

constexpr Algorithm p2p = Algorithm::p2p;
constexpr Algorithm gather = Algorithm::all_gather;
constexpr Algorithm a2a = Algorithm::a2a;

/// The bytes of each tensor of a message, whose parts lie in one array.
std::vector<std::int64_t> tensor_bytes(const PlannedMessage& scattered) {
  std::vector<std::int64_t> bytes;
  ArrayId array = -1;
  for (const Part& part : scattered.parts) {
    if (part.array != array) {
      bytes.push_back(0);
      array = part.array;
    }
    bytes.back() += part.bytes;
  }
  return bytes;
}

std::vector<std::int64_t> part_bytes(const PlannedMessage& message) {
  std::vector<std::int64_t> bytes;
  for (const Part& part : message.parts) {
    bytes.push_back(part.bytes);
  }
  return bytes;
}

/// @returns the largest number of parts
std::size_t expect_a_part_for_each_tensor(const PlannedGroup& scattered, const PlannedGroup& contiguous) {
  std::size_t most = 0;
  for (std::size_t rank = 0; rank < scattered.plans.size(); ++rank) {
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      const std::vector<Transfer>& expected = scattered.plans[rank].program(pass).transfers;
      const std::vector<Transfer>& made = contiguous.plans[rank].program(pass).transfers;
      EXPECT_EQ(made.size(), expected.size());
      for (std::size_t t = 0; t < std::min(made.size(), expected.size()); ++t) {
        for (const auto list : {&Transfer::sends, &Transfer::receives}) {
          EXPECT_TRUE(std::ranges::equal(made[t].*list, expected[t].*list, {}, part_bytes, tensor_bytes));
          for (const PlannedMessage& message : made[t].*list) {
            most = std::max(most, message.parts.size());
          }
        }
      }
    }
  }
  return most;
}

TEST(ContiguousMessages, HaveOnePartForEachTensor) {
  RandomPlans random{9};
  for (int round = 0; round < 100; ++round) {
    const std::vector<Level> levels = random.levels(3, 16);
    const test::MaskDefinition mask = random.mask(80);
    const Partition partition = random.partition();
    const auto heads = random.one_of(std::vector<Heads>{{28, 7}, {40, 8}, {60, 60}});
    const auto in_form = [&](MessageForm form) {
      return PlannedGroup{levels, mask, heads, partition, DataType::bf16, DataType::fp32, {8, 4}, form};
    };
    const PlannedGroup contiguous = in_form(MessageForm::contiguous);
    SCOPED_TRACE(contiguous.describe());
    expect_a_part_for_each_tensor(in_form(MessageForm::scattered), contiguous);
  }
}

TEST(ContiguousMessages, OfGradientsHaveSevenTensors) {
  // dq; of dk and dv the heads that one member holds, and those that it shares with the members on either
  // side.
  const auto in_form = [](MessageForm form) {
    return PlannedGroup{{{a2a, 4}},     {64},           true, {28, 7}, Partition::zigzag,
                        DataType::bf16, DataType::fp32, {},   form};
  };
  EXPECT_EQ(expect_a_part_for_each_tensor(in_form(MessageForm::scattered), in_form(MessageForm::contiguous)),
            7);
}

std::int64_t moves_in(const PlannedGroup& group) {
  std::int64_t most = 0;
  for (const ExchangePlan& plan : group.plans) {
    const auto is_move = [](const Instruction& i) { return std::holds_alternative<Move>(i.action); };
    most = std::max({most, std::ranges::count_if(plan.forward.instructions, is_move),
                     std::ranges::count_if(plan.backward.instructions, is_move)});
  }
  return most;
}

TEST(ContiguousMessages, TakeFewMovesHoweverManyRunsOfRowsTheyHave) {
  // Single tokens in turn, seen through windows that begin and end anywhere: runs of rows in every block that
  // is gathered, swapped or circulates.
  const test::MaskDefinition mask{
      .kind = test::MaskKind::sliding_window, .doc_lengths = {4001, 2999}, .window = {700, 300}};
  for (const std::vector<Level>& levels : std::vector<std::vector<Level>>{{{p2p, 4}},
                                                                          {{gather, 4}},
                                                                          {{a2a, 4}},
                                                                          {{p2p, 2}, {a2a, 2}},
                                                                          {{gather, 2}, {p2p, 2}},
                                                                          {{a2a, 2}, {gather, 2}}}) {
    const auto in_form = [&](MessageForm form) {
      return PlannedGroup{levels, mask, {8, 8}, Partition::striped, DataType::bf16, DataType::fp32, {}, form};
    };
    const PlannedGroup contiguous = in_form(MessageForm::contiguous);
    SCOPED_TRACE(contiguous.describe());
    EXPECT_LT(moves_in(contiguous), 40);
  }
}

std::int64_t packed_peak(const ExchangePlan& plan, PassSelection passes) {
  const ExchangePlan* const layer = &plan;
  return planned_memory({&layer, 1}, passes).by_category[static_cast<std::size_t>(MemoryCategory::packed)];
}

TEST(ContiguousMessages, PackWhatLiesApartAndNothingElse) {
  // Of the chunks 0 to 3, member 0 holds the first and the last; what it gets from member 1 lies between
  // them.
  constexpr std::int64_t tokens = 64;
  const PlannedGroup group{{{a2a, 2}},
                           {tokens},
                           false,
                           {8, 8},
                           Partition::zigzag,
                           DataType::bf16,
                           DataType::fp32,
                           {},
                           MessageForm::contiguous};
  // Half of the rows and heads of q, k and v; as much of dq, dk and dv later.
  const std::int64_t expected = 3 * (tokens / 2) * (8 / 2) * HeadDims{}.qk * 2;
  EXPECT_EQ(packed_peak(group.plans[0], PassSelection::both), 0);
  EXPECT_EQ(packed_peak(group.plans[1], PassSelection::both), expected);
  const PlannedGroup side_by_side{{{a2a, 2}},
                                  {tokens},
                                  false,
                                  {8, 8},
                                  Partition::contiguous,
                                  DataType::bf16,
                                  DataType::fp32,
                                  {},
                                  MessageForm::contiguous};
  EXPECT_EQ(packed_peak(side_by_side.plans[0], PassSelection::both), 0);
  EXPECT_EQ(packed_peak(side_by_side.plans[1], PassSelection::both), 0);
}

// --- Collectives ---

std::int64_t all_gathers(const ExchangePlan& plan, Pass pass) {
  return std::ranges::count(plan.program(pass).transfers, Collective::all_gather, &Transfer::collective);
}

PlannedGroup with_collectives(std::vector<Level> levels, const std::vector<std::int64_t>& documents,
                              bool causal, Partition partition) {
  return {std::move(levels),
          documents,
          causal,
          {8, 2},
          partition,
          DataType::bf16,
          DataType::fp32,
          HeadDims{},
          MessageForm::collectives};
}

TEST(Collectives, AreGathersOfWholeBlocksOfOneSize) {
  const std::vector<Level> levels{{gather, 4}};
  for (const Partition partition : {Partition::zigzag, Partition::contiguous, Partition::striped}) {
    for (const ExchangePlan& plan : with_collectives(levels, {64}, false, partition).plans) {
      EXPECT_EQ(all_gathers(plan, Pass::forward), 1);
      EXPECT_EQ(all_gathers(plan, Pass::backward), 1) << "gradients are messages";
    }
    for (const ExchangePlan& plan : with_collectives(levels, {65}, false, partition).plans) {
      EXPECT_EQ(all_gathers(plan, Pass::forward), 0) << "blocks of two sizes";
    }
    if (partition != Partition::striped) {
      for (const ExchangePlan& plan : with_collectives(levels, {64}, true, partition).plans) {
        EXPECT_EQ(all_gathers(plan, Pass::forward), 0) << "nobody looks at all blocks";
      }
    }
    for (const ExchangePlan& plan : with_collectives({{gather, 2}, {p2p, 3}}, {96}, false, partition).plans) {
      EXPECT_EQ(all_gathers(plan, Pass::forward), 3) << "one for each block of the ring";
    }
  }
}

TEST(Collectives, LeaveTheOwnBlockToTheTransport) {
  for (const Partition partition : {Partition::zigzag, Partition::contiguous}) {
    const PlannedGroup group = with_collectives({{gather, 4}}, {64}, false, partition);
    for (const ExchangePlan& plan : group.plans) {
      for (const Instruction& instruction : plan.forward.instructions) {
        const auto* move = std::get_if<Move>(&instruction.action);
        EXPECT_TRUE(move == nullptr || move->from.array != array_k);
      }
      // In the order of positions already, or packed in the order of ranks: K and V, of all ranks.
      EXPECT_EQ(packed_peak(plan, PassSelection::forward),
                partition == Partition::contiguous ? 0 : 2 * 64 * 2 * HeadDims{}.qk * 2);
    }
  }
}

}  // namespace
}  // namespace hcp
