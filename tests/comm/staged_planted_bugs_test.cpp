/// Bugs planted on one rank of those that pass a message round by the staged transport: each is found in
/// every schedule. MPI's own accesses to pinned memory are watched, too (mpi_accesses.cpp).
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "tests/comm/staged_case.hpp"
#include "tests/comm/test_patterns.hpp"
#include "tests/software_gpu/planted_bugs.hpp"
#include "tests/software_gpu/software_gpu.hpp"
#include "topology/mpi_collectives.hpp"

namespace hcp {
namespace {

using software_gpu::Bug;

struct Plantable {
  Bug bug;
  int rank;
  /// Calls of that rank that may not have it: those whose number does not depend on how fast the ranks are,
  /// and that nothing else makes up for. (What a host has seen to be done needs no event any more.)
  std::vector<int> calls;
};

const std::vector<Plantable> plantable{
    {Bug::skip_wait_on_compute, 0, {1}},    // copies of what is sent
    {Bug::skip_wait_on_compute, 1, {3}},    // after those of what is received
    {Bug::skip_wait_on_transport, 1, {1}},  // kernels on what was received
    {Bug::early_record, 0, {1, 2, 3}},      // the kernel before a set, and copies of chunks
    {Bug::early_record, 1, {7, 8, 9}},      // the last copy of a set, then as above
    {Bug::early_query, 0, {1}},             // MPI would send what has not come from the device
    {Bug::wrong_stream, 1, {1, 2}},
    {Bug::lost_copy, 0, {2, 3, 4, 5, 6}},  // after that of the numbers
    {Bug::lost_copy, 1, {2, 3, 4, 5, 6}},
};

using Parameter = std::tuple<Plantable, unsigned>;

std::string name_of_case(const testing::TestParamInfo<Parameter>& info) {
  return software_gpu::name_of(std::get<0>(info.param).bug) + "_on_rank_" +
         std::to_string(std::get<0>(info.param).rank) + "_" + std::to_string(std::get<1>(info.param));
}

class StagedPlantedBug : public StagedCase, public testing::WithParamInterface<Parameter> {
 protected:
  /// From rank 0 by way of all others back to rank 0, in five chunks; a set has either sends or receives, and
  /// its buffers change hands without the host. @return false, where the numbers are wrong
  bool goes_round(Transport& transport) {
    constexpr std::size_t bytes = 5 * chunk_bytes - 4;
    const int next = (world.rank() + 1) % world.size();
    const int previous = (world.rank() + world.size() - 1) % world.size();
    const std::vector<std::byte> numbers = pattern({.from = 0, .to = 0, .tag = round_++}, bytes);
    const DeviceBytes source{*device.memory, world.rank() == 0 ? numbers : std::vector<std::byte>(bytes)};
    const DeviceBytes passed{*device.memory, bytes};
    const auto send = [&] {
      Ticket ticket = transport.post(
          {.sends = {{.peer = next, .tag = 0, .parts = {passed.span()}}}, .receives = {}, .what = "send"});
      ticket.wait();
      return ticket;
    };
    const DeviceBytes arriving{*device.memory, bytes};
    const auto receive = [&] {
      fill(arriving, 3.0F);
      Ticket ticket = transport.post({.sends = {},
                                      .receives = {{.peer = previous, .tag = 0, .parts = {arriving.span()}}},
                                      .what = "receive"});
      ticket.wait();
      copy(arriving, passed);
      return ticket;
    };
    if (world.rank() == 0) {
      copy(source, passed);
      Ticket sent = send();
      Ticket received = receive();
      sent.finish();
      received.finish();
      return passed.values() == numbers;
    }
    Ticket received = receive();
    Ticket sent = send();
    fill(passed, 2.0F);
    received.finish();
    sent.finish();
    return true;
  }

  /// On any rank.
  bool anywhere(bool here) const {
    return all_reduce(world, Reduction::max, std::int64_t{here ? 1 : 0}) == 1;
  }

 private:
  int round_ = 0;  ///< each with other numbers, so that none are left over from the one before
};

INSTANTIATE_TEST_SUITE_P(Schedules, StagedPlantedBug,
                         testing::Combine(testing::ValuesIn(plantable), testing::Range(1U, 7U)),
                         name_of_case);

TEST_P(StagedPlantedBug, IsFoundWhicheverCallHasIt) {
  const auto& [planted, schedule] = GetParam();
  software_gpu::set_schedule(schedule);
  const auto transport = make_transport(world);
  EXPECT_TRUE(goes_round(*transport));
  for (const int nth : planted.calls) {
    software_gpu::finish_streams();
    EXPECT_TRUE(software_gpu::take_misuses().empty()) << "before call " << nth;
    barrier(world);
    if (world.rank() == planted.rank) software_gpu::plant(planted.bug, nth);
    const bool right = goes_round(*transport);
    EXPECT_TRUE(anywhere(software_gpu::uproot())) << "no call " << nth;
    software_gpu::finish_streams();
    const bool found = !software_gpu::take_misuses().empty();
    EXPECT_TRUE(anywhere(!right || found)) << "in call " << nth;
  }
}

}  // namespace
}  // namespace hcp
