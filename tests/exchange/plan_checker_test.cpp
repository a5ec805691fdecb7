/// Plans of random schemes and masks have none of the faults that plan_checker.hpp knows; and planted
/// faults are found.
#include "tests/exchange/plan_checker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/exchange/planned_group.hpp"
#include "tests/exchange/random_plans.hpp"

namespace hcp {
namespace {

using testing::AnyOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr Algorithm p2p = Algorithm::p2p;
constexpr Algorithm gather = Algorithm::all_gather;
constexpr Algorithm a2a = Algorithm::a2a;
constexpr HeadDims few_channels{2, 1};  // bytes are walked one by one

void expect_no_faults(const PlannedGroup& group) {
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    EXPECT_THAT(message_faults(group.plans, pass), IsEmpty());
    EXPECT_THAT(order_faults(group.plans, pass), IsEmpty());
    if (group.geometry().message_form != MessageForm::scattered) {
      EXPECT_THAT(form_faults(group.plans, pass), IsEmpty());
    }
  }
  for (const ExchangePlan& plan : group.plans) {
    EXPECT_THAT(memory_faults(plan), IsEmpty());
  }
}

TEST(PlanChecker, RandomPlansHaveNoFaults) {
  RandomPlans random{1};
  int with_other_keys = 0;
  for (int round = 0; round < 250; ++round) {
    const std::vector<Level> levels = random.levels(4, round % 10 == 0 ? 64 : 24);
    const test::MaskDefinition mask = random.mask(90);
    const auto heads = random.one_of(std::vector<Heads>{{28, 7}, {40, 8}, {64, 1}, {60, 60}, {125, 25}});
    const Partition partition = random.partition();
    const std::vector<DataType> types{DataType::fp32, DataType::bf16, DataType::fp16};
    const DataType storage = random.one_of(types);
    const DataType wire = random.one_of(types);
    if (Scheme{levels}.a2a_size() > heads.q) {
      continue;
    }
    const HeadDims dims = round % 2 == 0 ? few_channels : HeadDims{1, 1};  // K and V of one shape, too
    for (const MessageForm form : all_message_forms) {
      const PlannedGroup group{levels, mask, heads, partition, storage, wire, dims, form};
      SCOPED_TRACE(group.describe());
      expect_no_faults(group);
    }
    with_other_keys += mask.kv_doc_lengths.empty() ? 0 : 1;
  }
  EXPECT_GT(with_other_keys, 30);
}

// --- Planted faults. ---

std::vector<std::vector<Level>> planted_schemes() {
  return {{{p2p, 4}},           {{gather, 4}},           {{a2a, 4}},
          {{p2p, 2}, {p2p, 3}}, {{gather, 2}, {p2p, 3}}, {{p2p, 2}, {gather, 2}},
          {{p2p, 2}, {a2a, 2}}, {{a2a, 2}, {p2p, 3}}};
}

/// Calls `plant(plan, pass)` with a fresh copy of rank 1's plan for every scheme and pass.
template <typename Plant>
void for_each_plan(const Plant& plant) {
  for (const std::vector<Level>& levels : planted_schemes()) {
    const PlannedGroup group{levels,         {32, 0, 25},    true,        {8, 2}, Partition::zigzag,
                             DataType::bf16, DataType::fp32, few_channels};
    SCOPED_TRACE(group.describe());
    for (const Pass pass : {Pass::forward, Pass::backward}) {
      plant(group.plans[1], pass);
    }
  }
}

Program& program_of(ExchangePlan& plan, Pass pass) {
  return pass == Pass::forward ? plan.forward : plan.backward;
}

/// Indices of the instructions of one kind.
template <typename Action>
std::vector<std::ptrdiff_t> places_of(const ExchangePlan& plan, Pass pass) {
  std::vector<std::ptrdiff_t> places;
  const std::vector<Instruction>& instructions = plan.program(pass).instructions;
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    if (std::holds_alternative<Action>(instructions[i].action)) {
      places.push_back(static_cast<std::ptrdiff_t>(i));
    }
  }
  return places;
}

TEST(PlanChecker, FindsEveryWaitThatIsMissing) {
  int planted = 0;
  for_each_plan([&](const ExchangePlan& plan, Pass pass) {
    for (const std::ptrdiff_t place : places_of<Wait>(plan, pass)) {
      ExchangePlan faulty = plan;
      auto& instructions = program_of(faulty, pass).instructions;
      instructions.erase(instructions.begin() + place);
      EXPECT_THAT(memory_faults(faulty), Contains(HasSubstr("is never waited for")));
      ++planted;
    }
  });
  EXPECT_GT(planted, 50);
}

TEST(PlanChecker, FindsEveryWaitThatComesTooLateForItsReader) {
  // At the end of the pass: whatever reads what arrives, or fills what leaves, comes before it.
  int planted = 0;
  for_each_plan([&](const ExchangePlan& plan, Pass pass) {
    for (const std::ptrdiff_t place : places_of<Wait>(plan, pass)) {
      const Instruction& wait = plan.program(pass).instructions[static_cast<std::size_t>(place)];
      const auto id = static_cast<std::size_t>(std::get<Wait>(wait.action).transfer);
      if (plan.program(pass).transfers[id].receives.empty()) {
        continue;
      }
      ExchangePlan faulty = plan;
      auto& instructions = program_of(faulty, pass).instructions;
      std::rotate(instructions.begin() + place, instructions.begin() + place + 1, instructions.end());
      if (place + 1 < std::ssize(instructions)) {
        EXPECT_THAT(memory_faults(faulty), Not(IsEmpty())) << name_of(pass) << ", instruction " << place;
        ++planted;
      }
    }
  });
  EXPECT_GT(planted, 30);
}

/// Whether `move` writes into anything that `transfer` sends.
bool fills(const Move& move, const Transfer& transfer) {
  return std::ranges::any_of(transfer.sends, [&](const PlannedMessage& message) {
    return std::ranges::any_of(message.parts, [&](const Part& part) { return part.array == move.to.array; });
  });
}

TEST(PlanChecker, FindsEveryPostThatComesBeforeItsFill) {
  int planted = 0;
  for_each_plan([&](const ExchangePlan& plan, Pass pass) {
    for (const std::ptrdiff_t place : places_of<Post>(plan, pass)) {
      ExchangePlan faulty = plan;
      Program& program = program_of(faulty, pass);
      const Post post = std::get<Post>(program.instructions[static_cast<std::size_t>(place)].action);
      const auto first = program.instructions.begin();
      const auto before = std::make_reverse_iterator(first + place);
      const auto fill = std::find_if(before, program.instructions.rend(), [&](const Instruction& i) {
        const auto* move = std::get_if<Move>(&i.action);
        return move && fills(*move, program.transfers[static_cast<std::size_t>(post.transfer)]);
      });
      if (fill == program.instructions.rend()) {
        continue;
      }
      std::rotate(std::prev(fill.base()), first + place, first + place + 1);
      EXPECT_THAT(memory_faults(faulty),
                  Contains(AnyOf(HasSubstr("writes what is being sent"), HasSubstr("reads what nobody wrote"),
                                 HasSubstr("does not live"))))
          << name_of(pass) << ", instruction " << place;
      ++planted;
    }
  });
  EXPECT_GT(planted, 10);
}

TEST(PlanChecker, FindsReceivesThatLandARowTooFar) {
  int found = 0;
  for_each_plan([&](const ExchangePlan& plan, Pass pass) {
    for (std::size_t t = 0; t < plan.program(pass).transfers.size(); ++t) {
      for (std::size_t m = 0; m < plan.program(pass).transfers[t].receives.size(); ++m) {
        ExchangePlan faulty = plan;
        Part& part = program_of(faulty, pass).transfers[t].receives[m].parts.back();
        const ArrayPlan& array = faulty.arrays[static_cast<std::size_t>(part.array)];
        part.offset += array.row_elements() * static_cast<std::int64_t>(size_of(array.type));
        // Where a buffer is used again, what it held before may hide the gap.
        found += memory_faults(faulty).empty() ? 0 : 1;
        if (plan.program(pass).transfers.size() == 1 || part.offset + part.bytes > array.bytes()) {
          EXPECT_THAT(memory_faults(faulty), Not(IsEmpty())) << name_of(pass) << ", transfer " << t;
        }
      }
    }
  });
  EXPECT_GT(found, 50);
}

TEST(PlanChecker, FindsSumsThatNobodyInitialises) {
  int found = 0;
  for_each_plan([&](const ExchangePlan& plan, Pass pass) {
    for (const std::ptrdiff_t place : places_of<Fill>(plan, pass)) {
      ExchangePlan faulty = plan;
      auto& instructions = program_of(faulty, pass).instructions;
      instructions.erase(instructions.begin() + place);
      found += memory_faults(faulty).empty() ? 0 : 1;
    }
  });
  EXPECT_GT(found, 30);
}

class PlantedBetweenRanks : public testing::Test {
 protected:
  PlannedGroup group_{{{p2p, 2}, {a2a, 2}}, {64}, true, {8, 8}};
};

TEST_F(PlantedBetweenRanks, NothingBeforeItIsPlanted) {
  expect_no_faults(group_);
}

TEST_F(PlantedBetweenRanks, FindsRanksThatWaitForEachOther) {
  // Rank 3 swaps heads back (its last transfer) where everybody else swaps them to (the first one).
  Program& program = group_.plans[3].forward;
  const int last = static_cast<int>(program.transfers.size()) - 1;
  const auto other = [last](int transfer) { return transfer == 0 ? last : transfer == last ? 0 : transfer; };
  for (Instruction& instruction : program.instructions) {
    if (auto* post = std::get_if<Post>(&instruction.action)) {
      post->transfer = other(post->transfer);
    } else if (auto* wait = std::get_if<Wait>(&instruction.action)) {
      wait->transfer = other(wait->transfer);
    }
  }
  EXPECT_THAT(message_faults(group_.plans, Pass::forward), Contains(HasSubstr("rank 3 waits for ever")));
}

TEST_F(PlantedBetweenRanks, FindsAMessageOfAnotherSize) {
  group_.plans[2].backward.transfers.front().receives.front().parts.front().bytes -= 2;
  EXPECT_THAT(message_faults(group_.plans, Pass::backward),
              Contains(HasSubstr("what is sent is not what is received")));
}

TEST_F(PlantedBetweenRanks, FindsAMessageThatNobodySends) {
  group_.plans[0].forward.transfers.front().sends.pop_back();
  EXPECT_THAT(message_faults(group_.plans, Pass::forward), Contains(HasSubstr("waits for ever")));
}

TEST_F(PlantedBetweenRanks, FindsACommunicatorThatOthersDoNotCreate) {
  group_.plans[1].communicators.push_back({0, 1});
  EXPECT_THAT(message_faults(group_.plans, Pass::forward), Contains(HasSubstr("other communicators")));
}

}  // namespace
}  // namespace hcp
