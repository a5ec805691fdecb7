#include "src/comm/staged_transport.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/comm/staged_case.hpp"
#include "tests/comm/test_patterns.hpp"
#include "tests/harness/pmpi_counter.hpp"
#include "topology/mpi_collectives.hpp"

namespace hcp {
namespace {

using StagedTransportTest = StagedCase;

TEST_F(StagedTransportTest, KnowsItsPlace) {
  const auto transport = make_transport(world);
  EXPECT_EQ(transport->rank(), world.rank());
  EXPECT_EQ(transport->size(), world.size());
  EXPECT_EQ(transport->memory_space(), MemorySpace::device);
}

TEST_F(StagedTransportTest, RingsOfMessagesOfAnyNumberOfChunks) {
  const auto transport = make_transport(world);
  if (transport->size() == 1) return;
  constexpr std::size_t chunk = chunk_bytes;
  int tag = 0;
  for (const std::size_t bytes :
       {std::size_t{1}, chunk - 1, chunk, chunk + 1, 4 * chunk, 13 * chunk + 5, std::size_t{3}}) {
    exchange_with_neighbours(*transport, *device.memory, bytes, tag++);
  }
}

TEST_F(StagedTransportTest, PartsTravelInOrderBetweenAllRanks) {
  exchange_with_all(*make_transport(world), *device.memory);
}

TEST_F(StagedTransportTest, ChunksOfAProgram) {
  StagedTransports large{device.stream, DevicePath::pinned};
  const auto transport = large.make(world, patience_s);
  if (transport->size() == 1) return;
  exchange_with_neighbours(*transport, *device.memory, 2 * staged_chunk_bytes + 100, 1);
}

TEST_F(StagedTransportTest, MessagesWithOneTagKeepTheirOrderThoughWaitedForBackwards) {
  exchange_under_one_tag(*make_transport(world));
}

TEST_F(StagedTransportTest, OneWaitMovesTheSetsOfAllTransports) {
  if (world.size() < 2) return;
  const int last = world.size() - 1;
  const MpiCommunicator backwards = world.split(0, -world.rank());
  StagedTransports of_large_chunks{device.stream, DevicePath::pinned, std::int64_t{1} << 16};  // not eager
  const auto first = of_large_chunks.make(world, patience_s);
  const auto second = of_large_chunks.make(backwards, patience_s);
  constexpr std::size_t bytes = 600'000;  // more than are in flight
  const std::vector<std::byte> one = pattern({.from = 0, .to = last, .tag = 1}, bytes);
  const std::vector<std::byte> two = pattern({.from = 0, .to = last, .tag = 2}, bytes);
  if (world.rank() == 0) {
    const DeviceBytes from_one{*device.memory, one};
    const DeviceBytes from_two{*device.memory, two};
    Ticket early = first->post(
        {.sends = {{.peer = last, .tag = 1, .parts = {from_one.span()}}}, .receives = {}, .what = "first"});
    Ticket late = second->post(
        {.sends = {{.peer = 0, .tag = 2, .parts = {from_two.span()}}}, .receives = {}, .what = "second"});
    late.wait();  // but the receiver first waits for the other one
    early.wait();
    early.finish();
    late.finish();
  } else if (world.rank() == last) {
    const DeviceBytes to_one{*device.memory, bytes};
    const DeviceBytes to_two{*device.memory, bytes};
    carry_out(*first,
              {.sends = {}, .receives = {{.peer = 0, .tag = 1, .parts = {to_one.span()}}}, .what = ""});
    carry_out(*second,
              {.sends = {}, .receives = {{.peer = last, .tag = 2, .parts = {to_two.span()}}}, .what = ""});
    EXPECT_EQ(to_one.values(), one);
    EXPECT_EQ(to_two.values(), two);
  }
}

TEST_F(StagedTransportTest, BuffersPassBetweenKernelsAndMessagesInTheOrderOfTheStream) {
  const auto transport = make_transport(world);
  for (const std::size_t floats : {std::size_t{1}, std::size_t{1000}, std::size_t{7000}}) {
    EXPECT_TRUE(goes_round(*transport, floats)) << floats << " numbers";
  }
}

TEST_F(StagedTransportTest, CountsMessagesAndWhatMpiWasGiven) {
  // Neighbours in the communicator are far apart in the world, and numbered backwards.
  const MpiCommunicator half = world.split(world.rank() % 2, -world.rank());
  const auto transport = make_transport(half);
  reset_mpi_traffic();
  const std::vector<std::size_t> bytes_to = exchange_with_all(*transport, *device.memory);
  const MpiTrafficSeen seen = mpi_traffic_seen();
  EXPECT_TRUE(seen.other_calls.empty());

  std::map<int, MpiTraffic> expected;
  for (int peer = 0; peer < transport->size(); ++peer) {
    if (peer == transport->rank()) continue;
    const auto bytes = static_cast<std::int64_t>(bytes_to.at(static_cast<std::size_t>(peer)));
    const int last_in_world = world.size() - 1 - (world.size() - 1 - world.rank()) % 2;
    expected[last_in_world - 2 * peer] = {.bytes = bytes,
                                          .messages = (bytes + chunk_bytes - 1) / chunk_bytes};
  }
  EXPECT_EQ(seen.sent, expected);

  std::map<int, std::size_t> counted;
  for (const SentCount& count : transport->sent()) {
    EXPECT_EQ(count.tag, 0);
    EXPECT_EQ(count.messages, 1);  // however many chunks
    counted[count.peer] = static_cast<std::size_t>(count.bytes);
  }
  for (int peer = 0; peer < transport->size(); ++peer) {
    if (peer == transport->rank()) continue;
    EXPECT_EQ(counted[peer], bytes_to.at(static_cast<std::size_t>(peer)));
  }
  transport->reset_counts();
  EXPECT_TRUE(transport->sent().empty());
}

TEST_F(StagedTransportTest, RefusesMessagesThatCannotBe) {
  const auto transport = make_transport(world);
  expect_refusals(*transport, *device.memory);
  EXPECT_THROW(
      carry_out(*transport, {.sends = {}, .receives = {}, .collective = Collective::all_gather, .what = ""}),
      std::logic_error);
}

}  // namespace
}  // namespace hcp
