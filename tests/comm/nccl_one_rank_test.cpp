/// NCCL itself on one device: a communicator of one rank, made, used for a set without messages, and
/// destroyed. All that a machine with a single GPU can say of it.
#include <gtest/gtest.h>

#include <cstdio>

#include "src/comm/nccl_transport.hpp"
#include "tests/comm/device_case.hpp"

namespace hcp {
namespace {

TEST(NcclOneRank, CommunicatorOfOneRank) {
  ASSERT_EQ(find_nccl().reason, "");
  const DeviceRank rank;
  for (const bool serialize_levels : {false, true}) {
    NcclTransports transports{rank.device.stream, serialize_levels};
    std::printf("NCCL %s, %s\n", find_nccl().version.c_str(), transports.order().c_str());
    const auto transport = transports.make(rank.world, 60.0);
    EXPECT_EQ(transport->size(), 1);
    carry_out(*transport, {.sends = {}, .receives = {}, .what = "nothing"});
    EXPECT_TRUE(transport->sent().empty());
  }
}

}  // namespace
}  // namespace hcp
