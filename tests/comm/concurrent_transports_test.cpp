/// Transfers of several communicators in flight at the same time, as an inner and an outer ring have them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "src/comm/mpi_transport.hpp"
#include "tests/comm/test_patterns.hpp"

namespace hcp {
namespace {

constexpr double watchdog_s = 5;

/// One direction of a ring with buffers of its own; the two directions of a test meet other neighbours.
class Ring {
 public:
  Ring(const MpiCommunicator& comm, std::size_t bytes)
      : transport_{make_mpi_transport(comm, watchdog_s)}, outgoing_(bytes), arriving_(bytes) {}

  void post(int iteration) {
    const int rank = transport_->rank();
    MessageSet messages{.sends = {}, .receives = {}, .what = "iteration " + std::to_string(iteration)};
    if (transport_->size() > 1) {
      const int next = (rank + 1) % transport_->size();
      outgoing_.front() = outgoing_.back() =
          pattern_byte({.from = rank, .to = next, .tag = 0}, number(iteration));
      messages.sends.push_back({.peer = next, .tag = 0, .parts = {outgoing_}});
      messages.receives.push_back({.peer = previous(), .tag = 0, .parts = {arriving_}});
    }
    ticket_.emplace(transport_->post(messages));
  }

  void wait_and_check(int iteration) {
    ticket_->wait();
    if (transport_->size() == 1) return;
    const std::byte expected =
        pattern_byte({.from = previous(), .to = transport_->rank(), .tag = 0}, number(iteration));
    ASSERT_EQ(arriving_.front(), expected) << "iteration " << iteration;
    ASSERT_EQ(arriving_.back(), expected) << "iteration " << iteration;
  }

 private:
  int previous() const { return (transport_->rank() + transport_->size() - 1) % transport_->size(); }
  static std::size_t number(int iteration) { return static_cast<std::size_t>(iteration); }

  std::unique_ptr<Transport> transport_;
  std::vector<std::byte> outgoing_;
  std::vector<std::byte> arriving_;
  std::optional<Ticket> ticket_;
};

void sleep_up_to_us(std::mt19937& random, int longest_us) {
  const int delay_us = std::uniform_int_distribution{0, longest_us}(random);
  std::this_thread::sleep_for(std::chrono::microseconds{delay_us});
}

TEST(ConcurrentTransports, InnerAndOuterTransfersInFlightTogether) {
  const MpiCommunicator world = MpiCommunicator::duplicate(MPI_COMM_WORLD);
  const MpiCommunicator backwards = world.split(0, -world.rank());
  const MpiCommunicator pairs = world.split(world.rank() / 2, world.rank());
  std::array<Ring, 3> rings{Ring{world, 70'000}, Ring{backwards, 300}, Ring{pairs, 9'000}};

  // Each rank posts and waits in an order of its own, after pauses of its own.
  std::mt19937 random{static_cast<std::uint32_t>(world.rank())};
  std::array<std::size_t, 3> order{0, 1, 2};
  for (int iteration = 0; iteration < 1000; ++iteration) {
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t ring : order) {
      sleep_up_to_us(random, 100);
      rings.at(ring).post(iteration);
    }
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t ring : order) {
      sleep_up_to_us(random, 100);
      ASSERT_NO_FATAL_FAILURE(rings.at(ring).wait_and_check(iteration));
    }
  }
}

}  // namespace
}  // namespace hcp
