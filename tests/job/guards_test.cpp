#include "src/job/guards.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hcp {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr TrafficKey kv_to_1{Pass::forward, 1, 0, Payload::kv};
constexpr TrafficKey kv_to_2{Pass::forward, 2, 1, Payload::kv};
constexpr TrafficKey dkv_to_2{Pass::backward, 2, 1, Payload::dkv};

TEST(UnplannedTraffic, NothingWhereCountsAreThePlan) {
  const TrafficLedger planned{{kv_to_1, {4096, 2}}, {dkv_to_2, {512, 1}}};
  EXPECT_THAT(unplanned_traffic(planned, planned), IsEmpty());
}

TEST(UnplannedTraffic, BytesMessagesAndWhatOnlyOneSideKnows) {
  const TrafficLedger planned{{kv_to_1, {4096, 2}}, {dkv_to_2, {512, 1}}};
  EXPECT_THAT(unplanned_traffic(planned, {{kv_to_1, {4092, 2}}, {dkv_to_2, {512, 1}}}),
              ElementsAre(AllOf(HasSubstr("sent 4092 bytes in 2 messages"), HasSubstr("to CP rank 1"),
                                HasSubstr("planned were 4096 bytes in 2 messages"))));
  EXPECT_THAT(unplanned_traffic(planned, {{kv_to_1, {4096, 1}}, {dkv_to_2, {512, 1}}}), SizeIs(1));
  EXPECT_THAT(unplanned_traffic(planned, {{kv_to_1, {4096, 2}}}),
              ElementsAre(AllOf(HasSubstr("sent 0 bytes in 0 messages"), HasSubstr("level 1 in bwd"))));
  EXPECT_THAT(unplanned_traffic(planned, {{kv_to_1, {4096, 2}}, {kv_to_2, {8, 1}}, {dkv_to_2, {512, 1}}}),
              ElementsAre(AllOf(HasSubstr("to CP rank 2"), HasSubstr("planned were 0 bytes"))));
}

/// Four ranks of 8 tokens as two rings of two inside two of two; every token sees every other one.
class SilentLevel : public testing::Test {
 protected:
  AttentionMask mask = AttentionMask::no_mask(std::vector<std::int64_t>{0, 32});
  LayerGeometry geometry{.levels = {{Algorithm::p2p, 2}, {Algorithm::p2p, 2}},
                         .shards = {{{0, 8}}, {{8, 16}}, {{16, 24}}, {{24, 32}}},
                         .kv_shards = {{{0, 8}}, {{8, 16}}, {{16, 24}}, {{24, 32}}},
                         .mask = &mask,
                         .heads_q = 2,
                         .heads_kv = 2,
                         .dim_qk = 16,
                         .dim_v = 16};

  /// All messages of rank 0 as planned, but for one level of one pass.
  [[nodiscard]] TrafficLedger all_but(int level, Pass pass) const {
    TrafficLedger ledger = planned_ledger(make_exchange_plan(geometry, 0));
    std::erase_if(ledger,
                  [&](const auto& entry) { return entry.first.level == level && entry.first.pass == pass; });
    return ledger;
  }

  [[nodiscard]] std::vector<std::string> found_in(const TrafficLedger& ledger, PassSelection passes) const {
    std::vector<std::string> found;
    for (const LevelActivity& activity : level_activity(geometry, 0, ledger, passes)) {
      if (const auto silent = silent_level("p2p+p2p", activity)) {
        found.push_back(*silent);
      }
    }
    return found;
  }
};

TEST_F(SilentLevel, NoneInThePlan) {
  const TrafficLedger ledger = planned_ledger(make_exchange_plan(geometry, 0));
  EXPECT_THAT(found_in(ledger, PassSelection::both), IsEmpty());
  EXPECT_THAT(level_activity(geometry, 0, ledger, PassSelection::both), SizeIs(4));
}

TEST_F(SilentLevel, OnePassOfOneLevelIsEnough) {
  EXPECT_THAT(found_in(all_but(1, Pass::backward), PassSelection::both),
              ElementsAre("level 1 of p2p+p2p must communicate but moved nothing in bwd"));
  EXPECT_THAT(found_in(all_but(0, Pass::forward), PassSelection::both),
              ElementsAre("level 0 of p2p+p2p must communicate but moved nothing in fwd"));
}

TEST_F(SilentLevel, OnlyWhatIsTimed) {
  EXPECT_THAT(found_in(all_but(1, Pass::backward), PassSelection::forward), IsEmpty());
  EXPECT_THAT(found_in(all_but(1, Pass::backward), PassSelection::backward), SizeIs(1));
}

TEST_F(SilentLevel, NotWhereNobodyLooksAtTheOthers) {
  mask =
      AttentionMask::no_mask(std::vector<std::int64_t>{0, 16, 32});  // two documents: one in each inner ring
  const std::vector<std::string> found = found_in({}, PassSelection::forward);
  EXPECT_THAT(found, ElementsAre("level 0 of p2p+p2p must communicate but moved nothing in fwd"));
}

TEST(ImpossibleRate, AboveTwiceThePeak) {
  EXPECT_EQ(impossible_rate(2.0e9, 0.1, 1.0e10), std::nullopt);  // twice, to the FLOP
  EXPECT_EQ(impossible_rate(2.1e9, 0.1, 1.0e10),
            "computed at 21.0 GFLOP/s, more than twice its peak of 10.0 GFLOP/s");
}

}  // namespace
}  // namespace hcp
