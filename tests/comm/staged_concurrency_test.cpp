/// Sets of several transports in flight at the same time, as an inner and an outer ring have them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/comm/staged_case.hpp"

namespace hcp {
namespace {

/// One direction of a ring with buffers of its own; the directions of a test meet other neighbours.
class Ring {
 public:
  Ring(DeviceRank& rank, std::unique_ptr<Transport> transport, std::size_t floats)
      : rank_{&rank},
        transport_{std::move(transport)},
        outgoing_{*rank.device.memory, floats * sizeof(float)},
        arriving_{*rank.device.memory, floats * sizeof(float)} {}

  void post(int iteration) {
    MessageSet messages{.sends = {}, .receives = {}, .what = "iteration " + std::to_string(iteration)};
    if (transport_->size() > 1) {
      const int next = (transport_->rank() + 1) % transport_->size();
      rank_->fill(outgoing_, number(transport_->rank(), iteration));
      rank_->fill(arriving_, -1.0F);
      messages.sends.push_back({.peer = next, .tag = 0, .parts = {outgoing_.span()}});
      messages.receives.push_back({.peer = previous(), .tag = 0, .parts = {arriving_.span()}});
    }
    tickets_.push_back(transport_->post(messages));
  }

  void wait_and_check(int iteration) {
    tickets_.back().wait();
    rank_->fill(outgoing_, -2.0F);
    if (transport_->size() == 1) return;
    std::vector<float> expected(arriving_.span().size() / sizeof(float), number(previous(), iteration));
    const std::vector<std::byte> arrived = arriving_.values();
    ASSERT_TRUE(std::ranges::equal(arrived, std::as_bytes(std::span{expected}))) << "iteration " << iteration;
  }

  void finish() {
    for (Ticket& ticket : tickets_) ticket.finish();
  }

 private:
  int previous() const { return (transport_->rank() + transport_->size() - 1) % transport_->size(); }
  static float number(int rank, int iteration) { return static_cast<float>(1 + rank + 100 * iteration); }

  DeviceRank* rank_;
  std::unique_ptr<Transport> transport_;
  DeviceBytes outgoing_;
  DeviceBytes arriving_;
  std::vector<Ticket> tickets_;
};

void sleep_up_to_us(std::mt19937& random, int longest_us) {
  const int delay_us = std::uniform_int_distribution{0, longest_us}(random);
  std::this_thread::sleep_for(std::chrono::microseconds{delay_us});
}

using StagedConcurrencyTest = StagedCase;

TEST_F(StagedConcurrencyTest, InnerAndOuterTransfersInFlightTogether) {
  const MpiCommunicator backwards = world.split(0, -world.rank());
  const MpiCommunicator pairs = world.split(world.rank() / 2, world.rank());
  std::array<Ring, 3> rings{Ring{*this, make_transport(world), 9'000},
                            Ring{*this, make_transport(backwards), 70},
                            Ring{*this, make_transport(pairs), 2'500}};

  // Each rank posts and waits in an order of its own, after pauses of its own.
  std::mt19937 random{static_cast<std::uint32_t>(world.rank())};
  std::array<std::size_t, 3> order{0, 1, 2};
  for (int iteration = 0; iteration < 25; ++iteration) {
    std::ranges::shuffle(order, random);
    for (const std::size_t ring : order) {
      sleep_up_to_us(random, 300);
      rings.at(ring).post(iteration);
    }
    std::ranges::shuffle(order, random);
    for (const std::size_t ring : order) {
      sleep_up_to_us(random, 300);
      ASSERT_NO_FATAL_FAILURE(rings.at(ring).wait_and_check(iteration));
    }
  }
  for (Ring& ring : rings) ring.finish();
}

}  // namespace
}  // namespace hcp
