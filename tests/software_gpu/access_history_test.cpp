/// The history of accesses against one that keeps every access to every byte.
#include "tests/software_gpu/access_history.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace hcp::software_gpu {
namespace {

using testing::IsEmpty;
using testing::IsSubsetOf;

Operation operation(Stamp stamp, Clock before = {}) {
  before.add(stamp);
  return {.name = "operation " + std::to_string(stamp.count),
          .stream = static_cast<int>(stamp.slot),
          .device = 0,
          .stamp = stamp,
          .clock = before};
}

TEST(AccessHistory, TellsTheFirstByteAndTheOtherOperation) {
  AccessHistory history;
  EXPECT_THAT(history.note(operation({1, 1}), 100, 120, AccessMode::write), IsEmpty());
  EXPECT_THAT(history.note(operation({2, 1}), 90, 100, AccessMode::write), IsEmpty());  // beside it
  const auto conflicts = history.note(operation({3, 7}), 110, 130, AccessMode::read);
  ASSERT_EQ(conflicts.size(), 1);
  EXPECT_EQ(conflicts[0].address, 110);
  EXPECT_EQ(conflicts[0].other.stamp, (Stamp{1, 1}));
  EXPECT_EQ(conflicts[0].other.stream, 1);
  EXPECT_EQ(*conflicts[0].other.name, "operation 1");
  EXPECT_EQ(conflicts[0].other_mode, AccessMode::write);
}

TEST(AccessHistory, KnowsWhatIsOpenUntilItIsForgotten) {
  AccessHistory history;
  EXPECT_THAT(history.note(operation({1, 1}), 0, 8, AccessMode::read), IsEmpty());
  Clock waited;
  EXPECT_EQ(history.open(waited, 4, 5).size(), 1);
  EXPECT_THAT(history.open(waited, 8, 9), IsEmpty());
  waited.add({1, 1});
  EXPECT_THAT(history.open(waited, 4, 5), IsEmpty());
  history.forget(2, 8);
  EXPECT_EQ(history.open({}, 0, 8).size(), 1);
  EXPECT_THAT(history.open({}, 2, 8), IsEmpty());
}

constexpr std::size_t bytes = 48;

struct Noted {
  Stamp stamp;
  AccessMode mode = AccessMode::read;
};

/// By byte: all accesses since the last write, itself included.
using Everything = std::array<std::vector<Noted>, bytes>;

/// Counts of operations as slot * 1000 + count.
std::set<std::uint32_t> note(Everything& everything, const Operation& operation, std::uint64_t begin,
                             std::uint64_t end, AccessMode mode) {
  std::set<std::uint32_t> conflicts;
  for (std::uint64_t byte = begin; byte < end; ++byte) {
    for (const Noted& other : everything.at(byte)) {
      if ((other.mode == AccessMode::write || mode == AccessMode::write) &&
          !operation.clock.covers(other.stamp)) {
        conflicts.insert(other.stamp.slot * 1000 + other.stamp.count);
      }
    }
    if (mode == AccessMode::write) {
      everything.at(byte).clear();
    }
    everything.at(byte).push_back({operation.stamp, mode});
  }
  return conflicts;
}

TEST(AccessHistory, FindsWhatOneFindsThatForgetsNothing) {
  constexpr std::uint32_t slots = 4;
  std::mt19937 random{7};
  AccessHistory history;
  Everything everything;
  std::array<Clock, slots> clocks;
  std::array<std::uint32_t, slots> counts{};
  int with_conflicts = 0;
  for (int i = 0; i < 5000; ++i) {
    const std::uint32_t slot = random() % slots;
    if (random() % 2 == 0) {
      clocks.at(slot).join(clocks.at(random() % slots));
    }
    const Operation next = operation({slot, ++counts.at(slot)}, clocks.at(slot));
    clocks.at(slot) = next.clock;
    const std::uint64_t begin = random() % bytes;
    const std::uint64_t end = begin + 1 + random() % (bytes - begin);
    const AccessMode mode = random() % 3 == 0 ? AccessMode::write : AccessMode::read;
    std::set<std::uint32_t> found;
    for (const AccessHistory::Conflict& conflict : history.note(next, begin, end, mode)) {
      found.insert(conflict.other.stamp.slot * 1000 + conflict.other.stamp.count);
    }
    const std::set<std::uint32_t> all = note(everything, next, begin, end, mode);
    ASSERT_EQ(found.empty(), all.empty()) << "operation " << i;
    ASSERT_THAT(found, IsSubsetOf(all)) << "operation " << i;  // of readers in order, the last is told
    with_conflicts += found.empty() ? 0 : 1;
  }
  EXPECT_GT(with_conflicts, 500);
  EXPECT_LT(with_conflicts, 4500);
}

}  // namespace
}  // namespace hcp::software_gpu
