// Whether MPI takes pointers to the device.

#include <mpi.h>

#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include <cstddef>
#include <string>
#include <vector>

#include "src/comm/peers.hpp"
#include "src/comm/polling.hpp"
#include "src/comm/staged_message.hpp"
#include "src/comm/staged_transport.hpp"
#include "topology/mpi_collectives.hpp"

namespace hcp {
namespace {

/// What the library says of itself. Those that do not know the question do not know devices.
bool mpi_says_so() {
#if defined(MPIX_CUDA_AWARE_SUPPORT)
  return MPIX_Query_cuda_support() == 1;
#else
  return false;
#endif
}

/// One that MPI sends at once, and one for which it first asks.
constexpr std::int64_t probe_bytes[] = {64, std::int64_t{1} << 20};

/// Never 0xFF, and different from that of other ranks.
std::vector<std::byte> pattern_of(int rank, std::int64_t bytes) {
  std::vector<std::byte> pattern(static_cast<std::size_t>(bytes));
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    pattern[i] = static_cast<std::byte>((7 * i + i / 251 + 31 * static_cast<std::size_t>(rank)) % 251);
  }
  return pattern;
}

/// A message of device memory from each rank to the next one.
bool arrives_whole(const MpiCommunicator& comm, MemorySource& device, std::int64_t bytes) {
  const Peers peers{comm};
  const int next = (peers.rank() + 1) % peers.size();
  const int previous = (peers.rank() + peers.size() - 1) % peers.size();
  std::vector<std::byte> arrived(static_cast<std::size_t>(bytes), std::byte{0xFF});

  MemoryLedger ledger;
  const Buffer outgoing{ledger, MemoryCategory::qkv, bytes, device};
  const Buffer arriving{ledger, MemoryCategory::qkv, bytes, device};
  device.copy_from_host(outgoing.data(), pattern_of(peers.rank(), bytes).data(), bytes);
  device.copy_from_host(arriving.data(), arrived.data(), bytes);

  const std::string what = "a test of messages of device memory";
  MessageOrder sends;
  MessageOrder receives;
  const auto start = [&](Direction direction, int peer, MessageOrder& order, const Buffer& buffer) {
    const StagedRoute route{
        .peers = peers, .comm = comm.get(), .peer = peer, .tag = 0, .order = order, .what = what};
    return make_direct_message(
        direction, route,
        {.peer = peer, .tag = 0, .parts = {{buffer.data(), static_cast<std::size_t>(bytes)}}});
  };
  const auto receive = start(Direction::receive, previous, receives, arriving);
  const auto send = start(Direction::send, next, sends, outgoing);
  for (Polling polling; !receive->is_finished() || !send->is_finished(); polling.pause()) {
    receive->advance();
    send->advance();
  }

  device.copy_to_host(arrived.data(), arriving.data(), bytes);
  return arrived == pattern_of(previous, bytes);
}

bool on_all_ranks(const MpiCommunicator& comm, bool here) {
  return all_reduce(comm, Reduction::min, std::int64_t{here ? 1 : 0}) == 1;
}

}  // namespace

MpiDeviceSupport probe_device_support(const MpiCommunicator& everyone, MemorySource& device) {
  if (!on_all_ranks(everyone, mpi_says_so())) {
    return {.path = DevicePath::pinned,
            .reason = "MPI does not claim to take pointers to a device (MPIX_Query_cuda_support)"};
  }
  const MpiCommunicator comm = MpiCommunicator::duplicate(everyone.get());
  if (comm.size() == 1)
    return {.path = DevicePath::pinned, .reason = "there is no other rank to try it with"};
  for (const std::int64_t bytes : probe_bytes) {
    if (!on_all_ranks(comm, arrives_whole(comm, device, bytes))) {
      return {.path = DevicePath::pinned,
              .reason = "MPI claims to take pointers to a device, but a message of " + std::to_string(bytes) +
                        " B arrived changed"};
    }
  }
  return {.path = DevicePath::direct, .reason = {}};
}

}  // namespace hcp
