/// Messages of device memory by an MPI that takes it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/comm/mpi_for_devices.hpp"
#include "tests/comm/staged_case.hpp"
#include "tests/comm/test_patterns.hpp"
#include "topology/mpi_collectives.hpp"

namespace hcp {
namespace {

using testing::HasSubstr;

class StagedDirectTest : public StagedCase {
 protected:
  StagedDirectTest() { mpi_for_devices() = {}; }
  ~StagedDirectTest() override { mpi_for_devices() = {}; }

  StagedTransports direct{device.stream, DevicePath::direct, chunk_bytes};
};

TEST_F(StagedDirectTest, RingsAndAllToAll) {
  const auto transport = direct.make(world, patience_s);
  exchange_with_all(*transport, *device.memory);
  if (transport->size() == 1) return;
  mpi_for_devices().messages = 0;
  transport->reset_counts();
  exchange_with_neighbours(*transport, *device.memory, 20 * chunk_bytes, 1);
  EXPECT_EQ(mpi_for_devices().messages, 1);  // in one piece
  EXPECT_EQ(transport->sent().at(0).bytes, 20 * chunk_bytes);
}

TEST_F(StagedDirectTest, MessagesWithOneTagKeepTheirOrderThoughWaitedForBackwards) {
  exchange_under_one_tag(*direct.make(world, patience_s));
}

TEST_F(StagedDirectTest, BuffersPassBetweenKernelsAndMessagesInTheOrderOfTheStream) {
  const auto transport = direct.make(world, patience_s);
  for (const std::size_t floats : {std::size_t{1}, std::size_t{7000}}) {
    EXPECT_TRUE(goes_round(*transport, floats)) << floats << " numbers";
  }
}

TEST_F(StagedDirectTest, TimeoutNamesThePeerThatDoesNotSend) {
  if (world.size() < 2) return;
  const auto transport = direct.make(world, 0.3);
  const DeviceBytes memory{*device.memory, std::vector<std::byte>(8)};
  if (world.rank() == 0) {
    Ticket ticket = transport->post(
        {.sends = {}, .receives = {{.peer = 1, .tag = 1, .parts = {memory.span()}}}, .what = "step 2"});
    try {
      ticket.wait();
      ADD_FAILURE() << "a message came that was never sent";
    } catch (const TransportTimeout& timeout) {
      EXPECT_THAT(timeout.what(), HasSubstr("in step 2; nothing yet from world rank 1"));
    }
    barrier(world);
    ticket.finish();
  } else {
    barrier(world);
    if (world.rank() == 1) {
      carry_out(*transport,
                {.sends = {{.peer = 0, .tag = 1, .parts = {memory.span()}}}, .receives = {}, .what = "late"});
    }
  }
}

TEST_F(StagedDirectTest, IsTakenWhereMpiClaimsItAndItIsTrue) {
  const MpiDeviceSupport support = probe_device_support(world, *device.memory);
  if (world.size() == 1) {
    EXPECT_EQ(support.path, DevicePath::pinned);
    EXPECT_THAT(support.reason, HasSubstr("no other rank"));
  } else {
    EXPECT_EQ(support.path, DevicePath::direct);
    EXPECT_EQ(support.reason, "");
  }
}

TEST_F(StagedDirectTest, IsNotEvenTriedWhereOneRankDoesNotClaimIt) {
  mpi_for_devices().claims = world.rank() != world.size() - 1;
  const MpiDeviceSupport support = probe_device_support(world, *device.memory);
  EXPECT_EQ(support.path, DevicePath::pinned);
  EXPECT_THAT(support.reason, HasSubstr("MPI does not claim"));
  EXPECT_EQ(mpi_for_devices().messages, 0);
}

TEST_F(StagedDirectTest, IsNotTakenWhereAMessageArrivesChangedOnOneRank) {
  if (world.size() < 2) return;
  mpi_for_devices().spoils = world.rank() == world.size() - 1;
  const MpiDeviceSupport support = probe_device_support(world, *device.memory);
  EXPECT_EQ(support.path, DevicePath::pinned);
  EXPECT_THAT(support.reason, HasSubstr("a message of 64 B arrived changed"));
}

}  // namespace
}  // namespace hcp
