/// What the steps of a ring send together, and what they compute meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/exchange/planned_group.hpp"

namespace hcp {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

constexpr Algorithm p2p = Algorithm::p2p;
constexpr Algorithm gather = Algorithm::all_gather;

/// Everybody looks at everything, so that no message is empty.
PlannedGroup dense_group(std::vector<Level> levels, MessageForm form = MessageForm::scattered) {
  return {std::move(levels), {96},           false,      {4, 4}, Partition::zigzag,
          DataType::bf16,    DataType::fp32, HeadDims{}, form};
}

/// Of the transfers at one level of the scheme.
std::vector<std::multiset<Payload>> sent_by_step(const Program& program, int level) {
  std::vector<std::multiset<Payload>> sent;
  for (const Transfer& transfer : program.transfers) {
    if (transfer.level == level) {
      std::multiset<Payload>& together = sent.emplace_back();
      for (const PlannedMessage& message : transfer.sends) {
        together.insert(message.payload);
      }
    }
  }
  return sent;
}

TEST(RingSteps, BackwardSendsTheNextBlockAndTheLastGradientTogether) {
  for (const MessageForm form : all_message_forms) {
    const PlannedGroup group = dense_group({{p2p, 4}}, form);
    for (const ExchangePlan& plan : group.plans) {
      const auto kv = UnorderedElementsAre(Payload::kv);
      const auto dkv = UnorderedElementsAre(Payload::dkv);
      EXPECT_THAT(sent_by_step(plan.forward, 0), ElementsAre(kv, kv, kv));
      EXPECT_THAT(sent_by_step(plan.backward, 0),
                  ElementsAre(kv, kv, UnorderedElementsAre(Payload::kv, Payload::dkv), dkv, dkv));
    }
  }
}

TEST(RingSteps, BlocksGatheredAheadTravelApartFromGradients) {
  const PlannedGroup group = dense_group({{gather, 2}, {p2p, 4}});
  for (const std::multiset<Payload>& sent : sent_by_step(group.plans[0].backward, 1)) {
    EXPECT_EQ(sent.size(), 1);
  }
}

/// Query rows that are attended to between the post of each transfer of a level and its wait.
std::vector<std::int64_t> rows_under_transfers(const Program& program, int level) {
  std::vector<std::int64_t> rows(program.transfers.size(), 0);
  std::set<int> open;
  for (const Instruction& instruction : program.instructions) {
    if (const auto* post = std::get_if<Post>(&instruction.action)) {
      open.insert(post->transfer);
    } else if (const auto* wait = std::get_if<Wait>(&instruction.action)) {
      open.erase(wait->transfer);
    } else if (const auto* attend = std::get_if<Attend>(&instruction.action)) {
      for (const int transfer : open) {
        rows[static_cast<std::size_t>(transfer)] += attend->query.count;
      }
    }
  }
  std::vector<std::int64_t> of_level;
  for (std::size_t t = 0; t < rows.size(); ++t) {
    if (program.transfers[t].level == level) {
      of_level.push_back(rows[t]);
    }
  }
  return of_level;
}

TEST(RingSteps, EveryTransferHasABlockToHideUnder) {
  for (const MessageForm form : all_message_forms) {
    const PlannedGroup group = dense_group({{p2p, 4}}, form);
    for (const ExchangePlan& plan : group.plans) {
      const std::int64_t all = count_of(plan.rows);
      EXPECT_THAT(rows_under_transfers(plan.forward, 0), ElementsAre(all, all, all));
      // The own block is visited in two halves, under the first hop and under the last one.
      EXPECT_THAT(rows_under_transfers(plan.backward, 0), ElementsAre(all / 2, all, all, all, all - all / 2));
    }
  }
}

TEST(RingSteps, OnlyTheLastGradientsOfAnOuterRingAreExposed) {
  const PlannedGroup group = dense_group({{p2p, 2}, {p2p, 3}});
  for (const ExchangePlan& plan : group.plans) {
    const std::int64_t all = count_of(plan.rows);
    EXPECT_THAT(rows_under_transfers(plan.backward, 1), ElementsAre(2 * all, 2 * all, 2 * all, 0));
  }
}

}  // namespace
}  // namespace hcp
