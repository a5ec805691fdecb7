/// One message that no int can count. Needs about 5 GiB of memory on the host.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "src/comm/mpi_transport.hpp"
#include "tests/comm/test_patterns.hpp"
#include "tests/harness/pmpi_counter.hpp"

namespace hcp {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::size_t large = 2048 * mib + 12345;

/// A different number at the start of each 64 KiB and in the last bytes.
template <typename Visit>
void for_each_mark(std::vector<std::byte>& memory, Visit visit) {
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= memory.size(); at += mib / 16) visit(at);
  visit(memory.size() - sizeof(std::uint64_t));
}

TEST(LargeMessage, Over2GibArrivesWhole) {
  const MpiCommunicator world = MpiCommunicator::duplicate(MPI_COMM_WORLD);
  ASSERT_EQ(world.size(), 2);
  const auto transport = make_mpi_transport(world, 120);
  std::vector<std::byte> memory(large);
  const std::span<std::byte> all{memory};
  reset_mpi_traffic();
  if (world.rank() == 0) {
    for_each_mark(memory, [&](std::size_t at) {
      const std::uint64_t mark = at * 0x9E3779B97F4A7C15U + 1;
      std::memcpy(memory.data() + at, &mark, sizeof mark);
    });
    transport->post({.sends = {{.peer = 1, .tag = 0, .parts = {all}}}, .receives = {}, .what = "whole"})
        .wait();
    EXPECT_EQ(mpi_traffic_seen().sent.at(1), (MpiTraffic{.bytes = 2147495993, .messages = 1}));
    EXPECT_EQ(transport->sent().at(0).bytes, 2147495993);
  } else {
    // The receiver takes it in two parts, of which the first is 2 GiB - 1 B.
    transport
        ->post({.sends = {},
                .receives = {{.peer = 0,
                              .tag = 0,
                              .parts = {all.first(2048 * mib - 1), all.subspan(2048 * mib - 1)}}},
                .what = "whole"})
        .wait();
    std::size_t wrong = 0;
    for_each_mark(memory, [&](std::size_t at) {
      const std::uint64_t mark = at * 0x9E3779B97F4A7C15U + 1;
      if (std::memcmp(memory.data() + at, &mark, sizeof mark) != 0) ++wrong;
    });
    EXPECT_EQ(wrong, 0U);
  }
}

}  // namespace
}  // namespace hcp
