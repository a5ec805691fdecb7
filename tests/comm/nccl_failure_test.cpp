/// Peers that do not answer, and errors of the program itself: whoever notices ends what is under way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/comm/nccl_case.hpp"
#include "topology/mpi_collectives.hpp"

namespace hcp {
namespace {

using testing::Each;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

class NcclFailureTest : public NcclCase {
 protected:
  static constexpr double impatience_s = 0.3;

  template <typename Finish>
  std::string text_of_timeout(Finish finish) const {
    const double begin_s = MPI_Wtime();
    std::string text = "no timeout";
    try {
      finish();
    } catch (const TransportTimeout& timeout) {
      text = timeout.what();
    }
    EXPECT_GE(MPI_Wtime() - begin_s, impatience_s);
    EXPECT_LT(MPI_Wtime() - begin_s, 10);
    return text;
  }

  /// Whoever has nothing to wait for itself unwinds all the same: nobody destroys a communicator alone.
  static void expect_no_communicator() {
    EXPECT_THAT(software_gpu::live_objects(), Each(Not(HasSubstr("NCCL"))));
  }
};
INSTANTIATE_TEST_SUITE_P(Orders, NcclFailureTest, all_orders());

TEST_P(NcclFailureTest, NamesThePeerThatDoesNotSend) {
  if (world.size() < 2) return;
  const int silent = world.size() - 1;
  const DeviceBytes memory{*device.memory, std::vector<std::byte>(8)};
  const auto fail = [&] {
    const auto transport = transports.make(world, impatience_s);
    const auto second_level = transports.make(world, impatience_s);
    if (world.rank() != silent) {
      Ticket ticket = transport->post({.sends = {},
                                       .receives = {{.peer = silent, .tag = 1, .parts = {memory.span()}}},
                                       .what = "layer 0, forward, level 1, step 3"});
      ticket.wait();  // the host does not
      const std::string text = text_of_timeout([&] { ticket.finish(); });
      EXPECT_EQ(text, "world rank " + std::to_string(world.rank()) +
                          " waited 0.3 s in layer 0, forward, level 1, step 3; nothing yet from world rank " +
                          std::to_string(silent));
      expect_no_communicator();
      EXPECT_THROW(static_cast<void>(second_level->post({.sends = {}, .receives = {}, .what = ""})),
                   std::runtime_error);
    }
    barrier(world);
    throw std::runtime_error{"the job ends"};
  };
  EXPECT_THROW(fail(), std::runtime_error);
  expect_no_communicator();
}

TEST_P(NcclFailureTest, NamesAllPeersWhereItCannotTellWhichIsMissing) {
  if (world.size() < 3) return;
  const int silent = 1;
  const DeviceBytes outgoing{*device.memory, std::vector<std::byte>(1000)};
  const DeviceBytes arriving{*device.memory, std::vector<std::byte>(1000)};
  const auto fail = [&] {
    const auto transport = transports.make(world, impatience_s);
    if (world.rank() != silent) {
      const int next = (world.rank() + 1) % world.size();
      const int previous = (world.rank() + world.size() - 1) % world.size();
      Ticket ticket = transport->post({.sends = {{.peer = next, .tag = 1, .parts = {outgoing.span()}}},
                                       .receives = {{.peer = previous, .tag = 1, .parts = {arriving.span()}}},
                                       .what = "step 1"});
      ticket.wait();
      if (next == silent || previous == silent) {
        const std::string text = text_of_timeout([&] { ticket.finish(); });
        EXPECT_THAT(text, HasSubstr("in step 1; nothing yet from world rank " + std::to_string(previous) +
                                    "; not yet taken by world rank " + std::to_string(next)));
        EXPECT_THAT(text, EndsWith("(at least one of these; NCCL does not tell which)"));
      } else {
        ticket.finish();
      }
    }
    barrier(world);
    throw std::runtime_error{"the job ends"};
  };
  EXPECT_THROW(fail(), std::runtime_error);
  expect_no_communicator();
}

/// So that what is long in coming before it is no fault of its peers.
TEST_P(NcclFailureTest, TheDeadlineCountsFromWhenTheStreamHasComeToTheSet) {
  if (world.size() < 2 || GetParam().levels == Levels::concurrent) return;
  const auto patient = transports.make(world, patience_s);
  const auto impatient = transports.make(world, impatience_s);
  if (world.rank() > 1) return;
  const int peer = 1 - world.rank();
  const DeviceBytes outgoing{*device.memory, std::vector<std::byte>(8)};
  const DeviceBytes first{*device.memory, 8};
  const DeviceBytes second{*device.memory, 8};
  if (world.rank() == 0) std::this_thread::sleep_for(std::chrono::duration<double>{3 * impatience_s});
  const auto post = [&](Transport& transport, const DeviceBytes& arriving) {
    return transport.post({.sends = {{.peer = peer, .tag = 0, .parts = {outgoing.span()}}},
                           .receives = {{.peer = peer, .tag = 0, .parts = {arriving.span()}}},
                           .what = ""});
  };
  Ticket before = post(*patient, first);
  Ticket after = post(*impatient, second);
  before.wait();
  after.wait();
  EXPECT_NO_THROW(after.finish());
  before.finish();
}

TEST_P(NcclFailureTest, UnwindsWithoutWaitingForAnybody) {
  if (world.size() < 2) return;
  const DeviceBytes memory{*device.memory, std::vector<std::byte>(8)};
  const double begin_s = MPI_Wtime();
  const auto fail_with_open_sets = [&] {
    const auto transport = make_transport(world);
    const auto second_level = make_transport(world);
    const Ticket open = transport->post(
        {.sends = {},
         .receives = {{.peer = (world.rank() + 1) % world.size(), .tag = 1, .parts = {memory.span()}}},
         .what = ""});
    throw std::runtime_error{"failure in a computation"};
  };
  EXPECT_THROW(fail_with_open_sets(), std::runtime_error);
  EXPECT_LT(MPI_Wtime() - begin_s, 10);
  expect_no_communicator();
}

}  // namespace
}  // namespace hcp
