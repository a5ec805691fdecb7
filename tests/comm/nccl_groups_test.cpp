#include "src/comm/nccl_groups.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

namespace hcp {
namespace {

using testing::ElementsAre;
using testing::SizeIs;
using Kind = NcclOperation::Kind;
using Groups = std::vector<std::vector<NcclOperation>>;

std::vector<std::byte> memory(1 << 16);

std::span<std::byte> part_of(std::size_t bytes) {
  return std::span<std::byte>{memory}.first(bytes);
}

/// One set of each rank, every message in the sets of both its ends.
std::vector<MessageSet> random_sets(int size, double density, unsigned seed) {
  std::mt19937 random{seed};
  const auto up_to = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit + 1)); };
  std::vector<MessageSet> sets(static_cast<std::size_t>(size));
  for (int from = 0; from < size; ++from) {
    for (int to = 0; to < size; ++to) {
      if (from == to || static_cast<double>(random()) > density * static_cast<double>(random.max())) continue;
      int parts_left = most_parts_to_a_peer;
      for (const int tag : {7, 3, 5}) {
        const int parts = std::min(up_to(3), parts_left);
        if (parts == 0) continue;
        parts_left -= parts;
        Message message{.peer = to, .tag = tag, .parts = {}};
        for (int p = 0; p < parts; ++p) {
          message.parts.push_back(part_of(static_cast<std::size_t>(up_to(60'000))));
        }
        if (message.bytes() == 0) continue;
        sets[static_cast<std::size_t>(from)].sends.push_back(message);
        message.peer = from;
        sets[static_cast<std::size_t>(to)].receives.push_back(message);
      }
    }
  }
  // The ends need not list their messages in one order, as long as those of one tag are.
  for (MessageSet& set : sets) {
    std::ranges::stable_sort(set.receives, {}, [](const Message& m) {
      return std::pair{-m.peer, m.tag % 5};
    });
  }
  return sets;
}

/// NCCL as it might be at worst: an operation takes place when both its ranks have come to the group it is
/// in, and a rank goes on to its next group when all operations of this one have taken place.
class Network {
 public:
  explicit Network(std::vector<Groups> groups) : groups_{std::move(groups)}, at_(groups_.size(), 0) {
    for (std::size_t rank = 0; rank < groups_.size(); ++rank) {
      for (std::size_t g = 0; g < groups_[rank].size(); ++g) {
        for (const auto& [kind, peer, part] : groups_[rank][g]) {
          const int self = static_cast<int>(rank);
          const auto route = kind == Kind::send ? std::pair{self, peer} : std::pair{peer, self};
          (kind == Kind::send ? sent_ : received_)[route].push_back({g, part.size()});
        }
      }
    }
  }

  /// Whether each message meets the one that its receiver takes it for.
  [[nodiscard]] bool matches() const {
    return std::ranges::equal(sent_, received_, [](const auto& s, const auto& r) {
      return s.first == r.first &&
             std::ranges::equal(s.second, r.second, {}, &Operation::bytes, &Operation::bytes);
    });
  }

  /// Whether all ranks come to the end.
  bool run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < groups_.size(); ++rank) {
        while (at_[rank] < groups_[rank].size() && completes(static_cast<int>(rank))) {
          ++at_[rank];
          moved = true;
        }
      }
    }
    for (std::size_t rank = 0; rank < groups_.size(); ++rank) {
      if (at_[rank] != groups_[rank].size()) return false;
    }
    return true;
  }

 private:
  struct Operation {
    std::size_t group = 0;
    std::size_t bytes = 0;
  };
  using Operations = std::map<std::pair<int, int>, std::vector<Operation>>;  ///< by (sender, receiver)

  bool completes(int rank) {
    const std::size_t group = at_[static_cast<std::size_t>(rank)];
    const auto partners_are_there = [&](const Operations& own, const Operations& others, auto peer_of) {
      for (const auto& [route, operations] : own) {
        const auto [self, peer] = peer_of(route);
        if (self != rank) continue;
        for (std::size_t i = 0; i < operations.size(); ++i) {
          if (operations[i].group == group &&
              at_[static_cast<std::size_t>(peer)] < others.at(route)[i].group) {
            return false;
          }
        }
      }
      return true;
    };
    return partners_are_there(sent_, received_, [](auto route) { return route; }) &&
           partners_are_there(received_, sent_, [](auto route) {
             return std::pair{route.second, route.first};
           });
  }

  std::vector<Groups> groups_;
  std::vector<std::size_t> at_;  ///< group, by rank
  Operations sent_;
  Operations received_;
};

TEST(NcclGroups, EndsCutAlikeAndNoRankWaitsForEver) {
  for (const auto& [size, density] :
       {std::pair{2, 1.0}, {3, 1.0}, {5, 0.5}, {8, 0.7}, {129, 0.05}, {130, 0.3}, {300, 0.02}}) {
    for (const unsigned seed : {1U, 2U, 3U}) {
      const std::vector<MessageSet> sets = random_sets(size, density, seed);
      std::vector<Groups> groups;
      for (int rank = 0; rank < size; ++rank) {
        groups.push_back(groups_of(sets[static_cast<std::size_t>(rank)], rank, size));
        for (const auto& group : groups.back()) {
          EXPECT_FALSE(group.empty());
          EXPECT_LE(group.size(), most_operations_in_a_group);
        }
      }
      Network network{std::move(groups)};
      EXPECT_TRUE(network.matches()) << size << " ranks, seed " << seed;
      EXPECT_TRUE(network.run()) << size << " ranks, seed " << seed;
    }
  }
}

/// The simulation above tells ranks that cut alike from ranks that do not: here one has its first group cut
/// in two, between what it sends and what it receives.
TEST(NcclGroups, TheSimulationNoticesADeadlock) {
  const NcclOperation to_1{.kind = Kind::send, .peer = 1, .part = part_of(1)};
  const NcclOperation to_0{.kind = Kind::send, .peer = 0, .part = part_of(1)};
  const NcclOperation from_0{.kind = Kind::receive, .peer = 0, .part = part_of(1)};
  const NcclOperation from_1{.kind = Kind::receive, .peer = 1, .part = part_of(1)};
  EXPECT_TRUE((Network{{{{to_1, from_1}}, {{to_0, from_0}}}}.run()));
  EXPECT_FALSE((Network{{{{to_1}, {from_1}}, {{to_0}, {from_0}}}}.run()));
}

/// Of `rank`, which exchanges as much as may be with all others.
MessageSet fullest_set(int rank, int size) {
  MessageSet set;
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    const Message message{.peer = peer, .tag = 0, .parts = std::vector(most_parts_to_a_peer, part_of(8))};
    set.sends.push_back(message);
    set.receives.push_back(message);
  }
  return set;
}

TEST(NcclGroups, NeverHoldMoreOperationsThanNcclAccepts) {
  for (const int size : {2, 64, 128, 129, 130, 257, 4096}) {
    const int rank = size / 3;
    const Groups groups = groups_of(fullest_set(rank, size), rank, size);
    EXPECT_THAT(groups, SizeIs(static_cast<std::size_t>((size - 1 + 127) / 128)));
    std::size_t operations = 0;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      EXPECT_LE(groups[g].size(), 2048U);
      operations += groups[g].size();
      for (const NcclOperation& operation : groups[g]) {
        const int distance =
            ((operation.kind == Kind::send ? operation.peer - rank : rank - operation.peer) + size) % size;
        EXPECT_EQ(static_cast<std::size_t>(distance - 1) / 128, g) << size << " ranks";
      }
    }
    EXPECT_EQ(operations, static_cast<std::size_t>(2 * 8 * (size - 1)));
  }
}

TEST(NcclGroups, OrderIsByDistanceAndTagNotByTheSet) {
  const MessageSet set{.sends = {{.peer = 0, .tag = 1, .parts = {part_of(1)}},
                                 {.peer = 2, .tag = 9, .parts = {part_of(2)}},
                                 {.peer = 2, .tag = 4, .parts = {part_of(3), part_of(0), part_of(4)}}},
                       .receives = {{.peer = 0, .tag = 1, .parts = {part_of(5)}}},
                       .what = ""};
  std::vector<std::size_t> sizes;
  const Groups groups = groups_of(set, 1, 3);
  ASSERT_THAT(groups, SizeIs(1));
  for (const NcclOperation& operation : groups.front()) sizes.push_back(operation.part.size());
  EXPECT_THAT(sizes, ElementsAre(3U, 4U, 2U, 5U, 1U));
}

TEST(NcclGroups, RefuseMorePartsThanThereIsRoomFor) {
  MessageSet set{.sends = {}, .receives = {}, .what = "step 2"};
  set.receives.push_back({.peer = 1, .tag = 0, .parts = std::vector(5, part_of(1))});
  set.receives.push_back({.peer = 1, .tag = 1, .parts = std::vector(3, part_of(1))});
  EXPECT_THAT(groups_of(set, 0, 2), ElementsAre(SizeIs(8)));
  set.receives.push_back({.peer = 1, .tag = 2, .parts = {part_of(1)}});
  EXPECT_THROW(static_cast<void>(groups_of(set, 0, 2)), std::logic_error);
}

/// Of rank 1 of 3: parts of 10 and 20 B, gathered at 100 and 200 of the memory.
MessageSet gather_set() {
  const std::span<std::byte> all{memory};
  const std::vector own{all.subspan(0, 10), all.subspan(10, 20)};
  MessageSet set{.sends = {{.peer = 0, .tag = 0, .parts = own}, {.peer = 2, .tag = 0, .parts = own}},
                 .receives = {},
                 .collective = Collective::all_gather,
                 .what = ""};
  for (const std::size_t peer : {2U, 0U}) {
    set.receives.push_back({.peer = static_cast<int>(peer),
                            .tag = 0,
                            .parts = {all.subspan(100 + 10 * peer, 10), all.subspan(200 + 20 * peer, 20)}});
  }
  return set;
}

TEST(NcclGathers, BeginWhereRank0sPartArrives) {
  const std::vector<NcclGather> gathers = gathers_of(gather_set(), 1, 3);
  ASSERT_THAT(gathers, SizeIs(2));
  EXPECT_EQ(gathers[0].gathered, memory.data() + 100);
  EXPECT_EQ(gathers[0].part.data(), memory.data());
  EXPECT_EQ(gathers[0].part.size(), 10U);
  EXPECT_EQ(gathers[1].gathered, memory.data() + 200);
  EXPECT_EQ(gathers[1].part.size(), 20U);
  EXPECT_THAT(gathers_of({.sends = {}, .receives = {}, .what = ""}, 0, 1), SizeIs(0));
}

TEST(NcclGathers, RefuseWhatOneCallCannotDo) {
  const std::span<std::byte> all{memory};
  const auto refused = [](const auto& spoil) {
    MessageSet set = gather_set();
    spoil(set);
    EXPECT_THROW(static_cast<void>(gathers_of(set, 1, 3)), std::logic_error);
  };
  refused([&](MessageSet& set) { set.sends.pop_back(); });
  refused([&](MessageSet& set) { set.receives.pop_back(); });
  refused([&](MessageSet& set) { set.sends[1].parts[0] = all.subspan(1, 10); });
  refused([&](MessageSet& set) { set.receives[0].parts[1] = all.subspan(240, 19); });
  refused([&](MessageSet& set) { set.receives[0].parts[0] = all.subspan(121, 10); });
  refused([&](MessageSet& set) { set.receives[1].parts.pop_back(); });
}

}  // namespace
}  // namespace hcp
