/// Peers that do not answer. Each answers late, so that no transfer outlives its buffer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/comm/staged_case.hpp"
#include "topology/mpi_collectives.hpp"

namespace hcp {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class StagedTimeoutTest : public StagedCase {
 protected:
  static constexpr double impatience_s = 0.3;
  static constexpr std::int64_t large_chunk = std::int64_t{1} << 16;  // over every eager limit

  template <typename Wait>
  static std::string text_of_timeout(Wait wait) {
    const double begin_s = MPI_Wtime();
    std::string text = "no timeout";
    try {
      wait();
    } catch (const TransportTimeout& timeout) {
      text = timeout.what();
    }
    EXPECT_GE(MPI_Wtime() - begin_s, impatience_s);
    EXPECT_LT(MPI_Wtime() - begin_s, 10);
    return text;
  }

  StagedTransports of_large_chunks{device.stream, DevicePath::pinned, large_chunk};
};

TEST_F(StagedTimeoutTest, NamesThePeerThatDoesNotSend) {
  if (world.size() < 2) return;
  const int silent = world.size() - 1;
  const auto transport = transports.make(world, impatience_s);
  const DeviceBytes memory{*device.memory, std::vector<std::byte>(8)};
  if (world.rank() != silent) {
    Ticket ticket = transport->post({.sends = {},
                                     .receives = {{.peer = silent, .tag = 1, .parts = {memory.span()}}},
                                     .what = "layer 0, forward, level 1, step 3"});
    const std::string text = text_of_timeout([&] { ticket.wait(); });
    EXPECT_EQ(text, "world rank " + std::to_string(world.rank()) +
                        " waited 0.3 s in layer 0, forward, level 1, step 3; nothing yet from world rank " +
                        std::to_string(silent));
    barrier(world);
    ticket.finish();
  } else {
    barrier(world);
    MessageSet late{.sends = {}, .receives = {}, .what = "late answers"};
    for (int peer = 0; peer < silent; ++peer) {
      late.sends.push_back({.peer = peer, .tag = 1, .parts = {memory.span()}});
    }
    carry_out(*transport, late);
  }
}

TEST_F(StagedTimeoutTest, NamesThePeerThatDoesNotTakeManyChunks) {
  if (world.size() < 2) return;
  const auto transport = of_large_chunks.make(world, impatience_s);
  const DeviceBytes memory{*device.memory, std::vector<std::byte>(20 * large_chunk)};
  if (world.rank() == 0) {
    Ticket ticket = transport->post(
        {.sends = {{.peer = 1, .tag = 1, .parts = {memory.span()}}}, .receives = {}, .what = "step 1"});
    EXPECT_THAT(text_of_timeout([&] { ticket.wait(); }),
                HasSubstr("in step 1; not yet taken by world rank 1"));
    barrier(world);
    ticket.finish();
  } else {
    barrier(world);
    if (world.rank() == 1) {
      carry_out(*transport,
                {.sends = {}, .receives = {{.peer = 0, .tag = 1, .parts = {memory.span()}}}, .what = "late"});
    }
  }
}

TEST_F(StagedTimeoutTest, WhatIsWithMpiIsMissedAtTheEndOfAPass) {
  if (world.size() < 2) return;
  const auto transport = of_large_chunks.make(world, impatience_s);
  const DeviceBytes memory{*device.memory, std::vector<std::byte>(large_chunk)};
  if (world.rank() == 0) {
    Ticket ticket = transport->post(
        {.sends = {{.peer = 1, .tag = 1, .parts = {memory.span()}}}, .receives = {}, .what = "step 1"});
    ticket.wait();  // the buffer can be used again
    Ticket other = transport->post(
        {.sends = {}, .receives = {{.peer = 1, .tag = 2, .parts = {memory.span()}}}, .what = "step 2"});
    other.wait();  // what comes in time arrives
    const std::string text = text_of_timeout([&] { ticket.finish(); });
    EXPECT_THAT(text,
                AllOf(HasSubstr("in step 1; not yet taken by world rank 1"), Not(HasSubstr("nothing yet"))));
    barrier(world);
    ticket.finish();
    other.finish();
  } else {
    if (world.rank() == 1) {
      carry_out(*transport,
                {.sends = {{.peer = 0, .tag = 2, .parts = {memory.span()}}}, .receives = {}, .what = ""});
    }
    barrier(world);
    if (world.rank() == 1) {
      carry_out(*transport,
                {.sends = {}, .receives = {{.peer = 0, .tag = 1, .parts = {memory.span()}}}, .what = "late"});
    }
  }
}

}  // namespace
}  // namespace hcp
