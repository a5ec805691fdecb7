#include "src/comm/mpi_transport.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/comm/test_patterns.hpp"
#include "tests/harness/delayed_transport.hpp"
#include "tests/harness/pmpi_counter.hpp"
#include "topology/mpi_collectives.hpp"

namespace hcp {
namespace {

using testing::HasSubstr;

constexpr double watchdog_s = 5;

class MpiTransportTest : public testing::Test {
 protected:
  MpiCommunicator world = MpiCommunicator::duplicate(MPI_COMM_WORLD);
};

/// Every rank sends `bytes` to the next one and receives as many from the one before.
void exchange_with_neighbours(Transport& transport, std::size_t bytes, int tag) {
  const int rank = transport.rank();
  const int next = (rank + 1) % transport.size();
  const int previous = (rank + transport.size() - 1) % transport.size();
  std::vector<std::byte> outgoing = pattern({.from = rank, .to = next, .tag = tag}, bytes);
  std::vector<std::byte> arriving(bytes);
  transport
      .post({.sends = {{.peer = next, .tag = tag, .parts = {outgoing}}},
             .receives = {{.peer = previous, .tag = tag, .parts = {arriving}}},
             .what = "ring"})
      .wait();
  EXPECT_EQ(arriving, pattern({.from = previous, .to = rank, .tag = tag}, bytes));
}

/// Every rank exchanges messages of different sizes, each of three parts with gaps, with all others; the
/// largest is over every eager limit.
void exchange_with_all(Transport& transport) {
  const int rank = transport.rank();
  const auto bytes_of = [](int from, int to) { return static_cast<std::size_t>(1 + 7 * from + 40'000 * to); };
  std::vector<std::vector<std::byte>> outgoing(static_cast<std::size_t>(transport.size()));
  std::vector<std::vector<std::byte>> arriving(outgoing.size());
  MessageSet messages{.sends = {}, .receives = {}, .what = "all to all"};
  for (int peer = 0; peer < transport.size(); ++peer) {
    if (peer == rank) continue;
    std::vector<std::byte>& out = outgoing.at(static_cast<std::size_t>(peer));
    out = pattern({.from = rank, .to = peer}, bytes_of(rank, peer));
    const std::span<std::byte> from{out};
    const std::size_t cut = out.size() / 3;
    messages.sends.push_back(
        {.peer = peer, .tag = 0, .parts = {from.first(cut), from.subspan(cut, cut), from.subspan(2 * cut)}});

    // What arrives is cut elsewhere, and its two halves change places.
    std::vector<std::byte>& in = arriving.at(static_cast<std::size_t>(peer));
    in.resize(bytes_of(peer, rank));
    const std::span<std::byte> to{in};
    const std::size_t half = in.size() / 2;
    messages.receives.push_back({.peer = peer, .tag = 0, .parts = {to.subspan(half), to.first(half)}});
  }
  transport.post(messages).wait();
  for (int peer = 0; peer < transport.size(); ++peer) {
    if (peer == rank) continue;
    std::vector<std::byte> expected = pattern({.from = peer, .to = rank}, bytes_of(peer, rank));
    const auto half = static_cast<std::ptrdiff_t>(expected.size() / 2);
    std::ranges::rotate(expected, expected.end() - half);
    EXPECT_EQ(arriving.at(static_cast<std::size_t>(peer)), expected) << "from rank " << peer;
  }
}

TEST_F(MpiTransportTest, KnowsItsPlace) {
  const auto transport = make_mpi_transport(world, watchdog_s);
  EXPECT_EQ(transport->rank(), world.rank());
  EXPECT_EQ(transport->size(), world.size());
  EXPECT_EQ(transport->memory_space(), MemorySpace::host);
  EXPECT_TRUE(mpi_allows_helper_thread());
}

TEST_F(MpiTransportTest, RingOfAnySizeNeverHangs) {
  const auto transport = make_mpi_transport(world, watchdog_s);
  if (transport->size() == 1) return exchange_with_all(*transport);
  for (int repeat = 0; repeat < 100; ++repeat) {
    exchange_with_neighbours(*transport, repeat % 2 == 0 ? 8 : 100'000, repeat);
  }
}

TEST_F(MpiTransportTest, PartsTravelInOrderBetweenAllRanks) {
  for (const Progress progress : {Progress::helper_thread, Progress::none}) {
    exchange_with_all(*make_mpi_transport(world, watchdog_s, progress));
  }
}

TEST_F(MpiTransportTest, DelaysChangeNothing) {
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U, 5U}) {
    const auto transport = make_delayed_transport(make_mpi_transport(world, watchdog_s), seed);
    exchange_with_all(*transport);
    if (transport->size() > 1) exchange_with_neighbours(*transport, 100'000, 3);
  }
}

TEST_F(MpiTransportTest, AllGatherHasTheOwnPartInItsPlace) {
  constexpr std::array<std::size_t, 2> part_bytes{40'000, 3};
  if (world.size() == 1) return;
  const auto transport =
      make_delayed_transport(make_mpi_transport(world, watchdog_s), 1, std::chrono::milliseconds{1});
  const auto sent_by = [&](int rank, std::size_t p) {
    return pattern({.from = rank, .to = static_cast<int>(p)}, part_bytes[p]);
  };
  std::array<std::vector<std::byte>, 2> own;
  std::array<std::vector<std::byte>, 2> gathered;
  std::array<std::vector<std::byte>, 2> expected;
  for (std::size_t p = 0; p < own.size(); ++p) {
    own[p] = sent_by(world.rank(), p);
    gathered[p].resize(static_cast<std::size_t>(world.size()) * part_bytes[p]);
    for (int rank = 0; rank < world.size(); ++rank)
      std::ranges::copy(sent_by(rank, p), std::back_inserter(expected[p]));
  }
  MessageSet messages{
      .sends = {}, .receives = {}, .collective = Collective::all_gather, .what = "all-gather"};
  for (int peer = 0; peer < world.size(); ++peer) {
    if (peer == world.rank()) continue;
    messages.sends.push_back({.peer = peer, .tag = 0, .parts = {own[0], own[1]}});
    const auto place = [&](std::size_t p) {
      return std::span{gathered[p]}.subspan(static_cast<std::size_t>(peer) * part_bytes[p], part_bytes[p]);
    };
    messages.receives.push_back({.peer = peer, .tag = 0, .parts = {place(0), place(1)}});
  }
  transport->post(messages).wait();
  EXPECT_EQ(gathered, expected);
}

TEST_F(MpiTransportTest, MessagesWithOneTagKeepTheirOrder) {
  const auto transport = make_mpi_transport(world, watchdog_s);
  if (transport->size() == 1) return;
  const int peer = transport->rank() ^ 1;
  if (peer >= transport->size()) return;
  // A long message, then short ones that could overtake it.
  std::vector<std::vector<std::byte>> outgoing;
  std::vector<std::vector<std::byte>> arriving;
  for (const std::size_t bytes : {std::size_t{500'000}, std::size_t{1}, std::size_t{3}}) {
    const int number = static_cast<int>(outgoing.size());
    outgoing.push_back(pattern({.from = transport->rank(), .to = peer, .tag = number}, bytes));
    arriving.emplace_back(bytes);
  }
  std::vector<Ticket> tickets;
  for (std::size_t i = 0; i < outgoing.size(); ++i) {
    tickets.push_back(transport->post({.sends = {{.peer = peer, .tag = 9, .parts = {outgoing[i]}}},
                                       .receives = {{.peer = peer, .tag = 9, .parts = {arriving[i]}}},
                                       .what = "in order"}));
  }
  for (std::size_t i = tickets.size(); i-- > 0;) tickets[i].wait();
  for (std::size_t i = 0; i < arriving.size(); ++i) {
    const int number = static_cast<int>(i);
    EXPECT_EQ(arriving[i],
              pattern({.from = peer, .to = transport->rank(), .tag = number}, arriving[i].size()));
  }
}

TEST_F(MpiTransportTest, CountsWhatMpiWasGiven) {
  // Neighbours in the communicator are far apart in the world, and numbered backwards.
  const MpiCommunicator half = world.split(world.rank() % 2, -world.rank());
  const auto transport = make_mpi_transport(half, watchdog_s);
  reset_mpi_traffic();
  exchange_with_all(*transport);
  if (transport->size() > 1) exchange_with_neighbours(*transport, 1000, 5);
  const MpiTrafficSeen seen = mpi_traffic_seen();

  std::map<int, MpiTraffic> counted;
  for (const SentCount& count : transport->sent()) {
    const int last_in_world = world.size() - 1 - (world.size() - 1 - world.rank()) % 2;
    MpiTraffic& traffic = counted[last_in_world - 2 * count.peer];
    traffic.bytes += count.bytes;
    traffic.messages += count.messages;
  }
  EXPECT_EQ(seen.sent, counted);
  EXPECT_TRUE(seen.other_calls.empty());

  std::int64_t expected_bytes = transport->size() > 1 ? 1000 : 0;
  for (int peer = 0; peer < transport->size(); ++peer) {
    if (peer != transport->rank()) expected_bytes += 1 + 7 * transport->rank() + 40'000 * peer;
  }
  std::int64_t bytes = 0;
  for (const auto& [world_rank, traffic] : counted) bytes += traffic.bytes;
  EXPECT_EQ(bytes, expected_bytes);

  transport->reset_counts();
  EXPECT_TRUE(transport->sent().empty());
}

TEST_F(MpiTransportTest, TheCounterNoticesCollectives) {
  reset_mpi_traffic();
  static_cast<void>(all_reduce(world, Reduction::sum, std::int64_t{1}));
  EXPECT_FALSE(mpi_traffic_seen().other_calls.empty());
}

TEST_F(MpiTransportTest, RefusesMessagesThatCannotBe) {
  const auto transport = make_mpi_transport(world, watchdog_s);
  std::vector<std::byte> memory(4);
  const int other = (world.rank() + 1) % world.size();
  const auto post_to = [&](int peer, std::vector<std::span<std::byte>> parts) {
    transport
        ->post({.sends = {{.peer = peer, .tag = 0, .parts = std::move(parts)}}, .receives = {}, .what = ""})
        .wait();
  };
  EXPECT_THROW(post_to(world.rank(), {memory}), std::logic_error);
  EXPECT_THROW(post_to(world.size(), {memory}), std::logic_error);
  EXPECT_THROW(post_to(-1, {memory}), std::logic_error);
  EXPECT_THROW(post_to(other, {}), std::logic_error);
  EXPECT_THROW(post_to(other, {std::span<std::byte>{memory}.first(0)}), std::logic_error);
}

TEST_F(MpiTransportTest, TimeoutNamesThePeerThatDoesNotSend) {
  if (world.size() < 2) return;
  const int silent = world.size() - 1;
  // The silent rank answers after everybody else has given up, so that no transfer outlives its buffer.
  const auto impatient = make_mpi_transport(world, 0.3);
  std::vector<std::byte> memory(8);
  if (world.rank() != silent) {
    Ticket ticket = impatient->post({.sends = {},
                                     .receives = {{.peer = silent, .tag = 1, .parts = {memory}}},
                                     .what = "layer 0, forward, level 1, step 3"});
    const double begin_s = MPI_Wtime();
    try {
      ticket.wait();
      ADD_FAILURE() << "a message came that was never sent";
    } catch (const TransportTimeout& timeout) {
      const std::string text = timeout.what();
      EXPECT_THAT(text, HasSubstr("world rank " + std::to_string(world.rank()) + " waited 0.3 s"));
      EXPECT_THAT(text, HasSubstr("layer 0, forward, level 1, step 3"));
      EXPECT_THAT(text, HasSubstr("nothing yet from world rank " + std::to_string(silent)));
      EXPECT_THAT(text, testing::Not(HasSubstr("not yet taken")));
    }
    EXPECT_GE(MPI_Wtime() - begin_s, 0.3);
    EXPECT_LT(MPI_Wtime() - begin_s, 3);
  }
  barrier(world);
  if (world.rank() == silent) {
    MessageSet late{.sends = {}, .receives = {}, .what = "late answers"};
    for (int peer = 0; peer < silent; ++peer)
      late.sends.push_back({.peer = peer, .tag = 1, .parts = {memory}});
    impatient->post(late).wait();
  }
  barrier(world);
}

TEST_F(MpiTransportTest, TimeoutNamesThePeerThatDoesNotTake) {
  if (world.size() < 2) return;
  const auto impatient = make_mpi_transport(world, 0.3);
  std::vector<std::byte> memory(1'000'000);  // over every eager limit
  if (world.rank() == 0) {
    Ticket ticket = impatient->post(
        {.sends = {{.peer = 1, .tag = 1, .parts = {memory}}}, .receives = {}, .what = "step 1"});
    try {
      ticket.wait();
      ADD_FAILURE() << "a message left that nobody took";
    } catch (const TransportTimeout& timeout) {
      EXPECT_THAT(timeout.what(), HasSubstr("in step 1; not yet taken by world rank 1"));
    }
  }
  barrier(world);
  if (world.rank() == 1) {
    impatient->post({.sends = {}, .receives = {{.peer = 0, .tag = 1, .parts = {memory}}}, .what = "late"})
        .wait();
  }
  barrier(world);
}

TEST_F(MpiTransportTest, UnwindsWithoutWaitingForAnybody) {
  if (world.size() < 2) return;
  static std::array<std::byte, 8> memory;  // the library keeps it: what is awaited here never comes
  const double begin_s = MPI_Wtime();
  const auto fail_with_open_transfers = [&] {
    const auto transport = make_mpi_transport(world, watchdog_s);
    const Ticket open = transport->post(
        {.sends = {},
         .receives = {{.peer = (world.rank() + 1) % world.size(), .tag = 1, .parts = {memory}}},
         .what = ""});
    throw std::runtime_error{"failure in a computation"};
  };
  EXPECT_THROW(fail_with_open_transfers(), std::runtime_error);
  EXPECT_LT(MPI_Wtime() - begin_s, 3);
}

TEST_F(MpiTransportTest, MessagesOfUnexpectedSizeAreErrors) {
  if (world.size() < 2) return;
  const auto transport = make_mpi_transport(world, watchdog_s);
  std::vector<std::byte> memory(100);
  const std::span<std::byte> all{memory};
  if (world.rank() == 0) {
    for (const std::size_t bytes : {50U, 100U}) {
      transport
          ->post({.sends = {{.peer = 1, .tag = 1, .parts = {all.first(bytes)}}}, .receives = {}, .what = ""})
          .wait();
    }
  }
  if (world.rank() == 1) {
    const auto receive = [&](std::size_t bytes) {
      transport
          ->post({.sends = {}, .receives = {{.peer = 0, .tag = 1, .parts = {all.first(bytes)}}}, .what = ""})
          .wait();
    };
    EXPECT_THROW(receive(60), std::logic_error);
    EXPECT_THROW(receive(60), MpiError);
  }
  barrier(world);
}

}  // namespace
}  // namespace hcp
