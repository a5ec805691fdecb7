/// Which orders of launches can end, and what is told of those that cannot.
#include "tests/software_gpu/nccl/launch_order.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hcp::software_gpu {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

NcclLaunch exchange(std::int64_t communicator, std::vector<int> sends_to, std::vector<int> receives_from) {
  return {.communicator = communicator,
          .name = communicator == 0 ? "inner" : "outer",
          .sends_to = std::move(sends_to),
          .receives_from = std::move(receives_from)};
}

/// With one peer, both ways.
NcclLaunch with(int peer, std::int64_t communicator) {
  return exchange(communicator, {peer}, {peer});
}

TEST(LaunchOrder, NothingIsFine) {
  EXPECT_THAT(launch_order_findings({}), IsEmpty());
  EXPECT_THAT(launch_order_findings({{}, {}}), IsEmpty());
}

TEST(LaunchOrder, TheSameOnAllRanksIsFine) {
  EXPECT_THAT(
      launch_order_findings({{with(1, 0), with(1, 1), with(1, 0)}, {with(0, 0), with(0, 1), with(0, 0)}}),
      IsEmpty());
}

TEST(LaunchOrder, ARingOfThreeIsFine) {
  EXPECT_THAT(launch_order_findings({{exchange(0, {1}, {2}), exchange(0, {1}, {2})},
                                     {exchange(0, {2}, {0}), exchange(0, {2}, {0})},
                                     {exchange(0, {0}, {1}), exchange(0, {0}, {1})}}),
              IsEmpty());
}

TEST(LaunchOrder, OneLaunchMayMeetSeveralOfAPeer) {
  EXPECT_THAT(
      launch_order_findings({{exchange(0, {1, 1}, {})}, {exchange(0, {}, {0}), exchange(0, {}, {0})}}),
      IsEmpty());
}

TEST(LaunchOrder, TwoCommunicatorsInOppositeOrdersAreFound) {
  EXPECT_THAT(launch_order_findings({{with(1, 0), with(1, 1)}, {with(0, 1), with(0, 0)}}),
              ElementsAre(AllOf(HasSubstr("wait for each other"), HasSubstr("launch 0 of rank 0 (inner)"),
                                HasSubstr("launch 0 of rank 1 (outer)"))));
}

TEST(LaunchOrder, ACircleOverThreeRanksAndCommunicatorsIsFound) {
  EXPECT_THAT(launch_order_findings({{exchange(0, {1}, {}), exchange(2, {}, {2})},
                                     {exchange(1, {2}, {}), exchange(0, {}, {0})},
                                     {exchange(2, {0}, {}), exchange(1, {}, {1})}}),
              ElementsAre(HasSubstr("wait for each other")));
}

TEST(LaunchOrder, ASendThatEndsBeforeItsReceiverBeginsIsFound) {
  EXPECT_THAT(launch_order_findings({{exchange(0, {1}, {}), exchange(0, {}, {1})},
                                     {exchange(0, {0}, {}), exchange(0, {}, {0})}}),
              ElementsAre(HasSubstr("wait for each other")));
}

TEST(LaunchOrder, AMessageThatNobodyAsksForIsFound) {
  EXPECT_THAT(launch_order_findings({{exchange(0, {1, 1}, {})}, {exchange(0, {}, {0})}}),
              ElementsAre("inner: rank 0 sends rank 1 2 messages, of which 1 are asked for"));
}

}  // namespace
}  // namespace hcp::software_gpu
