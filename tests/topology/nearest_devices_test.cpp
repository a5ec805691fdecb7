#include "topology/nearest_devices.hpp"

#include <gmock/gmock.h>

#include <stdexcept>

namespace hcp {
namespace {

using testing::ElementsAre;

/// What a rank sees that is at these distances from devices 0, 1, ...
std::vector<VisibleDevice> at(const std::vector<int>& distances) {
  std::vector<VisibleDevice> devices;
  for (const int distance : distances) {
    devices.push_back({"device " + std::to_string(devices.size()), distance});
  }
  return devices;
}

std::vector<int> chosen(const std::vector<std::vector<VisibleDevice>>& ranks) {
  return nearest_devices(ranks);
}

TEST(NearestDevices, EquallyFarDevicesAreDealtInOrder) {
  EXPECT_THAT(chosen({at({2, 2, 2, 2}), at({2, 2, 2, 2}), at({2, 2, 2, 2})}), ElementsAre(0, 1, 2));
}

TEST(NearestDevices, EveryRankGetsTheOneThatItIsNearTo) {
  // Four ranks on two packages, bound in turn; devices 0 and 1 hang on the first package.
  EXPECT_THAT(chosen({at({0, 0, 2, 2}), at({2, 2, 0, 0}), at({0, 0, 2, 2}), at({2, 2, 0, 0})}),
              ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(chosen({at({1, 0}), at({0, 1})}), ElementsAre(1, 0));
}

TEST(NearestDevices, ARankThatMayRunAnywhereLeavesTheNearOnesToOthers) {
  EXPECT_THAT(chosen({at({2, 2}), at({0, 2})}), ElementsAre(1, 0));
}

TEST(NearestDevices, AFarFreeDeviceComesBeforeANearOneInUse) {
  // All ranks are bound to the first package.
  EXPECT_THAT(chosen({at({0, 0, 2, 2}), at({0, 0, 2, 2}), at({0, 0, 2, 2}), at({0, 0, 2, 2})}),
              ElementsAre(0, 1, 2, 3));
}

TEST(NearestDevices, MoreRanksThanDevicesShareThemEvenly) {
  const std::vector<VisibleDevice> any = at({2, 2, 2});
  EXPECT_THAT(chosen({any, any, any, any, any, any, any}), ElementsAre(0, 1, 2, 0, 1, 2, 0));
  EXPECT_THAT(chosen({at({0, 2}), at({0, 2}), at({2, 0}), at({2, 0})}), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(chosen({at({0}), at({0}), at({0})}), ElementsAre(0, 0, 0));
}

TEST(NearestDevices, RanksThatSeeDifferentDevices) {
  // Each rank is given one device, which it counts as its first.
  EXPECT_THAT(chosen({{{"a", 2}}, {{"b", 0}}}), ElementsAre(0, 0));
  // Both see the same two, in different order.
  EXPECT_THAT(chosen({{{"a", 2}, {"b", 2}}, {{"b", 2}, {"a", 2}}}), ElementsAre(0, 0));
  EXPECT_THAT(chosen({{{"a", 2}, {"b", 2}}, {{"a", 2}, {"b", 2}}, {{"c", 2}}}), ElementsAre(0, 1, 0));
  // The second sees one alone, and the first leaves it to that one.
  EXPECT_THAT(chosen({{{"a", 0}, {"b", 2}}, {{"a", 2}}}), ElementsAre(1, 0));
}

TEST(NearestDevices, ARankWithoutDevicesIsRefused) {
  EXPECT_THROW(static_cast<void>(chosen({at({0}), {}})), std::invalid_argument);
  EXPECT_TRUE(chosen({}).empty());
}

}  // namespace
}  // namespace hcp
