/// What plan_checker.hpp knows of order and of the form of messages: planted faults are found, and those of
/// order by nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/exchange/plan_checker.hpp"
#include "tests/exchange/planned_group.hpp"

namespace hcp {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr Algorithm p2p = Algorithm::p2p;
constexpr Algorithm gather = Algorithm::all_gather;

PlannedGroup dense_group(std::vector<Level> levels, MessageForm form) {
  return {std::move(levels), {96},           false,      {8, 8}, Partition::zigzag,
          DataType::bf16,    DataType::fp32, HeadDims{}, form};
}

TEST(PlanOrder, FindsTwoMessagesToOneRankInTheOtherOrder) {
  // Halfway round a ring of four, the next block and the gradient of the last one go to the same rank.
  PlannedGroup group = dense_group({{p2p, 4}}, MessageForm::contiguous);
  int planted = 0;
  for (Transfer& transfer : group.plans[1].backward.transfers) {
    if (transfer.sends.size() == 2 && transfer.sends[0].peer == transfer.sends[1].peer) {
      std::swap(transfer.sends[0], transfer.sends[1]);
      ++planted;
    }
  }
  EXPECT_EQ(planted, 1);
  EXPECT_THAT(message_faults(group.plans, Pass::backward), IsEmpty()) << "tags tell them apart";
  EXPECT_THAT(order_faults(group.plans, Pass::backward),
              Contains("from rank 1 to 2: messages are not received in the order in which they are sent"));
}

TEST(PlanOrder, FindsTwoSetsThatSomeRanksPostInTheOtherOrder) {
  // The first hops of the outer and of the inner ring are posted one after the other. In the other order on
  // ranks 0 and 3, rank 0 waits for 1, 1 for 3, 3 for 2 and 2 for 0.
  PlannedGroup group = dense_group({{p2p, 2}, {p2p, 2}}, MessageForm::contiguous);
  EXPECT_THAT(order_faults(group.plans, Pass::forward), IsEmpty());
  for (const std::size_t rank : {0U, 3U}) {
    std::vector<Instruction>& instructions = group.plans[rank].forward.instructions;
    const auto is_post = [](const Instruction& i) { return std::holds_alternative<Post>(i.action); };
    const auto outer = std::ranges::find_if(instructions, is_post);
    ASSERT_TRUE(is_post(*std::next(outer)));
    std::swap(*outer, *std::next(outer));
  }
  EXPECT_THAT(message_faults(group.plans, Pass::forward), IsEmpty()) << "messages of two communicators";
  EXPECT_THAT(order_faults(group.plans, Pass::forward),
              Contains(HasSubstr("in no order that suits all ranks")));
}

TEST(PlanOrder, FindsSetsThatMeetTwoSetsOfOneRank) {
  // Rank 0 sends in two sets what rank 1 receives in one.
  PlannedGroup group = dense_group({{p2p, 4}}, MessageForm::contiguous);
  Program& program = group.plans[0].backward;
  const auto both =
      std::ranges::find_if(program.transfers, [](const Transfer& t) { return t.sends.size() == 2; });
  ASSERT_NE(both, program.transfers.end());
  Transfer second{.communicator = both->communicator};
  second.sends.push_back(both->sends.back());
  both->sends.pop_back();
  const auto first_id = static_cast<int>(both - program.transfers.begin());
  const auto second_id = static_cast<int>(program.transfers.size());
  program.transfers.push_back(second);
  const auto post = std::ranges::find_if(program.instructions, [&](const Instruction& i) {
    const auto* found = std::get_if<Post>(&i.action);
    return found != nullptr && found->transfer == first_id;
  });
  Instruction post_second = *post;
  std::get<Post>(post_second.action).transfer = second_id;
  program.instructions.insert(std::next(post), post_second);
  EXPECT_THAT(order_faults(group.plans, Pass::backward),
              Contains(HasSubstr("in no order that suits all ranks")));
}

TEST(MessageParts, FindsPartsThatTheOtherEndDoesNotHave) {
  PlannedGroup group = dense_group({{p2p, 2}}, MessageForm::contiguous);
  std::vector<Part>& parts = group.plans[0].forward.transfers.front().sends.front().parts;
  Part& first = parts.front();
  parts.insert(parts.begin() + 1, {first.array, first.offset + first.bytes / 2, first.bytes / 2});
  parts.front().bytes /= 2;
  EXPECT_THAT(form_faults(group.plans, Pass::forward), Contains(HasSubstr("has other parts at its ends")));
}

TEST(MessageParts, FindsMoreThanEightOfThem) {
  PlannedGroup group = dense_group({{p2p, 2}}, MessageForm::contiguous);
  const auto cut_up = [](PlannedMessage& message) {
    const Part whole = message.parts.front();
    message.parts.clear();
    for (std::int64_t i = 0; i < 9; ++i) {
      message.parts.push_back({whole.array, whole.offset + i, 1});
    }
  };
  cut_up(group.plans[0].forward.transfers.front().sends.front());
  cut_up(group.plans[1].forward.transfers.front().receives.front());
  EXPECT_THAT(form_faults(group.plans, Pass::forward), Contains(HasSubstr("has 9 parts")));
}

class PlantedInAnAllGather : public testing::Test {
 protected:
  PlannedGroup group_{dense_group({{gather, 3}}, MessageForm::collectives)};
  Transfer& transfer_ = group_.plans[1].forward.transfers.front();

  [[nodiscard]] std::vector<std::string> faults() const { return form_faults(group_.plans, Pass::forward); }
};

TEST_F(PlantedInAnAllGather, NothingBeforeItIsPlanted) {
  EXPECT_EQ(transfer_.collective, Collective::all_gather);
  EXPECT_THAT(faults(), IsEmpty());
}

TEST_F(PlantedInAnAllGather, FindsARankThatSendsMessagesInstead) {
  transfer_.collective = Collective::none;
  EXPECT_THAT(faults(), Contains(HasSubstr("not all ranks take part")));
}

TEST_F(PlantedInAnAllGather, FindsBlocksInTheOrderOfOtherRanks) {
  std::swap(transfer_.receives[0].parts, transfer_.receives[1].parts);
  EXPECT_THAT(faults(), Contains(HasSubstr("does not receive in the order of the ranks")));
}

TEST_F(PlantedInAnAllGather, FindsOtherBlocksForOtherRanks) {
  transfer_.sends[1].parts[0].offset += 32;
  EXPECT_THAT(faults(), Contains(HasSubstr("does not send the same to all")));
}

TEST_F(PlantedInAnAllGather, FindsAnOwnBlockThatNobodyWrites) {
  EXPECT_THAT(memory_faults(group_.plans[1]), IsEmpty());
  transfer_.collective = Collective::none;
  EXPECT_THAT(memory_faults(group_.plans[1]), Contains(HasSubstr("reads what nobody wrote")));
}

}  // namespace
}  // namespace hcp
