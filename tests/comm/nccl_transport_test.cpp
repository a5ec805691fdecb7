#include "src/comm/nccl_transport.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/comm/nccl_case.hpp"
#include "tests/comm/test_patterns.hpp"

namespace hcp {
namespace {

using testing::HasSubstr;

using NcclTransportTest = NcclCase;
INSTANTIATE_TEST_SUITE_P(Orders, NcclTransportTest, all_orders());

TEST_P(NcclTransportTest, KnowsItsPlaceAndItsOrder) {
  const auto transport = make_transport(world);
  EXPECT_EQ(transport->rank(), world.rank());
  EXPECT_EQ(transport->size(), world.size());
  EXPECT_EQ(transport->memory_space(), MemorySpace::device);
  EXPECT_EQ(transports.order(), GetParam().levels == Levels::serialized
                                    ? "serialized"
                                    : "in order of launch (NCCL_LAUNCH_ORDER_IMPLICIT)");
}

TEST_P(NcclTransportTest, RingOfAnySize) {
  const auto transport = make_transport(world);
  if (transport->size() == 1) return;
  int tag = 0;
  for (const std::size_t bytes : {1U, 8U, 100'003U, 4096U}) {
    exchange_with_neighbours(*transport, *device.memory, bytes, tag++);
  }
}

TEST_P(NcclTransportTest, UnevenMessagesOfSeveralPartsBetweenAllRanks) {
  exchange_with_all(*make_transport(world), *device.memory);
}

TEST_P(NcclTransportTest, SomeRanksHaveNothingToSay) {
  const auto transport = make_transport(world);
  const int last = transport->size() - 1;
  if (last == 0) return carry_out(*transport, {.sends = {}, .receives = {}, .what = "nobody"});
  const std::vector<std::byte> sent = pattern({.from = 0, .to = last}, 1000);
  if (transport->rank() == 0) {
    const DeviceBytes outgoing{*device.memory, sent};
    carry_out(*transport, {.sends = {{.peer = last, .tag = 0, .parts = {outgoing.span()}}},
                           .receives = {},
                           .what = "one message"});
  } else if (transport->rank() == last) {
    const DeviceBytes arriving{*device.memory, sent.size()};
    carry_out(*transport, {.sends = {},
                           .receives = {{.peer = 0, .tag = 0, .parts = {arriving.span()}}},
                           .what = "one message"});
    EXPECT_EQ(arriving.values(), sent);
  } else {
    carry_out(*transport, {.sends = {}, .receives = {}, .what = "one message"});
  }
}

/// A set has messages with two tags, which the ends list in different orders; three such sets are open, and
/// are waited for backwards.
TEST_P(NcclTransportTest, MessagesOfOpenSetsKeepTheirOrder) {
  const auto transport = make_transport(world);
  const int peer = transport->rank() ^ 1;
  if (peer >= transport->size()) return;
  struct Exchange {
    DeviceBytes outgoing;
    DeviceBytes arriving;
    int tag;
  };
  std::vector<Exchange> exchanges;
  std::vector<Ticket> tickets;
  for (int set = 0; set < 3; ++set) {
    MessageSet messages{.sends = {}, .receives = {}, .what = "set " + std::to_string(set)};
    for (const int tag : {10 * set + 1, 10 * set}) {
      const std::size_t bytes = 50'000 / static_cast<std::size_t>(1 + tag);
      exchanges.push_back(
          {DeviceBytes{*device.memory, pattern({.from = transport->rank(), .to = peer, .tag = tag}, bytes)},
           DeviceBytes{*device.memory, bytes}, tag});
      const Exchange& exchange = exchanges.back();
      messages.sends.push_back({.peer = peer, .tag = tag, .parts = {exchange.outgoing.span()}});
      messages.receives.push_back({.peer = peer, .tag = tag, .parts = {exchange.arriving.span()}});
    }
    if (transport->rank() < peer) std::ranges::reverse(messages.receives);
    tickets.push_back(transport->post(messages));
  }
  for (std::size_t i = tickets.size(); i-- > 0;) tickets[i].wait();
  for (Ticket& ticket : tickets) ticket.finish();
  for (const auto& [outgoing, arriving, tag] : exchanges) {
    EXPECT_EQ(arriving.values(),
              pattern({.from = peer, .to = transport->rank(), .tag = tag}, arriving.span().size()))
        << "tag " << tag;
  }
}

/// A ring whose buffers change hands without the host: made by kernels before each post, used by kernels
/// right after each wait.
TEST_P(NcclTransportTest, BuffersPassBetweenKernelsAndMessagesInTheOrderOfTheStream) {
  const auto transport = make_transport(world);
  for (const std::size_t floats : {1U, 1000U}) {
    EXPECT_TRUE(goes_round(*transport, floats)) << floats << " numbers";
  }
}

/// Of two parts, with room for the own one, which the call may fill.
TEST_P(NcclTransportTest, AllGather) {
  const auto transport = make_transport(world);
  const auto size = static_cast<std::size_t>(transport->size());
  const auto rank = static_cast<std::size_t>(transport->rank());
  constexpr std::array<std::size_t, 2> bytes{1000, 36};
  MessageSet messages{.sends = {}, .receives = {}, .collective = Collective::all_gather, .what = "gather"};
  std::vector<DeviceBytes> own;
  std::vector<DeviceBytes> gathered;
  for (const std::size_t part : {0U, 1U}) {
    own.emplace_back(
        *device.memory,
        pattern({.from = transport->rank(), .to = 0, .tag = static_cast<int>(part)}, bytes.at(part)));
    gathered.emplace_back(*device.memory, size * bytes.at(part));
  }
  for (std::size_t peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    const int number = static_cast<int>(peer);
    messages.sends.push_back({.peer = number, .tag = 0, .parts = {own[0].span(), own[1].span()}});
    messages.receives.push_back({.peer = number,
                                 .tag = 0,
                                 .parts = {gathered[0].span().subspan(peer * bytes[0], bytes[0]),
                                           gathered[1].span().subspan(peer * bytes[1], bytes[1])}});
  }
  carry_out(*transport, messages);
  if (size == 1) return;  // nothing was asked of NCCL
  for (const std::size_t part : {0U, 1U}) {
    const std::vector<std::byte> values = gathered[part].values();
    for (std::size_t peer = 0; peer < size; ++peer) {
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(peer * bytes.at(part));
      EXPECT_EQ(
          std::vector(begin, begin + static_cast<std::ptrdiff_t>(bytes.at(part))),
          pattern({.from = static_cast<int>(peer), .to = 0, .tag = static_cast<int>(part)}, bytes.at(part)))
          << "part " << part << " of rank " << peer;
    }
  }
}

/// Pairs exchange while all ranks form a ring: what one level brings goes out on the other, step by step.
TEST_P(NcclTransportTest, TwoLevelsAtOnce) {
  if (world.size() < 2) return;
  const MpiCommunicator pair = world.split(world.rank() / 2, world.rank());
  const MpiCommunicator ring = world.split(0, -world.rank());
  const auto inner = make_transport(pair);
  const auto outer = make_transport(ring);
  const int size = outer->size();
  const int next = (outer->rank() + 1) % size;
  const int previous = (outer->rank() + size - 1) % size;
  constexpr std::size_t bytes = 400;
  const auto own = [&](int world_rank) { return pattern({.from = world_rank, .to = 0}, bytes); };
  const DeviceBytes current{*device.memory, own(world.rank())};
  const DeviceBytes other{*device.memory, bytes};
  const DeviceBytes arriving{*device.memory, bytes};
  std::vector<Ticket> tickets;
  for (int step = 0; step < size; ++step) {
    // The block goes on along the ring while the pair looks at it.
    Ticket passes = outer->post({.sends = {{.peer = next, .tag = 0, .parts = {current.span()}}},
                                 .receives = {{.peer = previous, .tag = 0, .parts = {arriving.span()}}},
                                 .what = "outer"});
    if (inner->size() == 2) {
      const int peer = 1 - inner->rank();
      Ticket shown = inner->post({.sends = {{.peer = peer, .tag = 1, .parts = {current.span()}}},
                                  .receives = {{.peer = peer, .tag = 1, .parts = {other.span()}}},
                                  .what = "inner"});
      shown.wait();
      tickets.push_back(std::move(shown));
    }
    passes.wait();
    tickets.push_back(std::move(passes));
    copy(arriving, current);
  }
  for (Ticket& ticket : tickets) ticket.finish();
  EXPECT_EQ(current.values(), own(world.rank()));  // once round
  if (inner->size() == 2) {
    // In the last step the neighbour in the pair held what has one step left to its owner, which is the next
    // one along the ring; that runs against the numbers of the world.
    const int neighbour = world.rank() ^ 1;
    EXPECT_EQ(other.values(), own((neighbour + size - 1) % size));
  }
}

/// What one level brings goes out on the other, though the device's own stream never waited for it.
TEST_P(NcclTransportTest, SerializedSetsFollowEachOtherWhateverTheirLevel) {
  if (world.size() == 1 || GetParam().levels == Levels::concurrent) return;
  const MpiCommunicator backwards = world.split(0, -world.rank());
  const auto there = make_transport(world);
  const auto back = make_transport(backwards);
  const int next = (there->rank() + 1) % there->size();
  const int previous = (there->rank() + there->size() - 1) % there->size();
  const auto in_backwards = [&](int rank) { return there->size() - 1 - rank; };
  const std::vector<std::byte> own = pattern({.from = there->rank(), .to = next}, 10'000);
  const DeviceBytes outgoing{*device.memory, own};
  const DeviceBytes visiting{*device.memory, own.size()};
  const DeviceBytes home{*device.memory, own.size()};
  Ticket goes = there->post({.sends = {{.peer = next, .tag = 0, .parts = {outgoing.span()}}},
                             .receives = {{.peer = previous, .tag = 0, .parts = {visiting.span()}}},
                             .what = "there"});
  Ticket comes =
      back->post({.sends = {{.peer = in_backwards(previous), .tag = 0, .parts = {visiting.span()}}},
                  .receives = {{.peer = in_backwards(next), .tag = 0, .parts = {home.span()}}},
                  .what = "back"});
  goes.wait();
  comes.wait();
  goes.finish();
  comes.finish();
  EXPECT_EQ(home.values(), own);
}

TEST_P(NcclTransportTest, CountsWhatNcclWasGiven) {
  // Neighbours in the communicator are far apart in the world, and numbered backwards.
  const MpiCommunicator half = world.split(world.rank() % 2, -world.rank());
  const auto transport = make_transport(half);
  static_cast<void>(software_gpu::take_nccl_bytes());
  const std::vector<std::size_t> bytes_to = exchange_with_all(*transport, *device.memory);
  const std::map<int, std::int64_t> seen = software_gpu::take_nccl_bytes();

  std::map<int, std::int64_t> counted;
  for (const SentCount& count : transport->sent()) {
    EXPECT_EQ(count.messages, 1);  // however many parts
    EXPECT_EQ(count.bytes, static_cast<std::int64_t>(bytes_to.at(static_cast<std::size_t>(count.peer))));
    const int last_in_world = world.size() - 1 - (world.size() - 1 - world.rank()) % 2;
    counted[last_in_world - 2 * count.peer] = count.bytes;
  }
  EXPECT_EQ(seen, counted);
  EXPECT_EQ(counted.size(), static_cast<std::size_t>(transport->size() - 1));
  transport->reset_counts();
  EXPECT_TRUE(transport->sent().empty());
}

TEST_P(NcclTransportTest, RefusesMessagesThatCannotBe) {
  const auto transport = make_transport(world);
  expect_refusals(*transport, *device.memory);
  const DeviceBytes memory{*device.memory, 4};
  const Message in_nine_parts{
      .peer = (world.rank() + 1) % world.size(), .tag = 0, .parts = std::vector(9, memory.span())};
  EXPECT_THROW(carry_out(*transport, {.sends = {in_nine_parts}, .receives = {}, .what = ""}),
               std::logic_error);
}

}  // namespace
}  // namespace hcp
