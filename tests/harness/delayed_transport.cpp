#include "tests/harness/delayed_transport.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace hcp {
namespace {

constexpr int longest_delay_us = 2000;

class DelayedTransport : public Transport {
 public:
  DelayedTransport(std::unique_ptr<Transport> inner, std::uint64_t seed)
      : inner_{std::move(inner)}, random_{seed * 1'000'003 + static_cast<std::uint64_t>(inner_->rank())} {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  MemorySpace memory_space() const override { return inner_->memory_space(); }
  std::vector<SentCount> sent() const override { return inner_->sent(); }
  void reset_counts() override { inner_->reset_counts(); }

  Ticket post(const MessageSet& messages) override {
    pause();
    for (const Message& message : messages.receives) {
      for (const std::span<std::byte> part : message.parts) std::ranges::fill(part, std::byte{0xFF});
    }
    const int id = next_id_++;
    held_back_.emplace_back(id, messages);
    // Later sets never overtake earlier ones: messages between two ranks keep their order.
    if (std::bernoulli_distribution{0.5}(random_)) start_held_back();
    return Ticket{*this, id};
  }

 protected:
  void wait(int ticket) override {
    pause();
    start_held_back();
    started_.extract(ticket).mapped().wait();
    pause();
  }

 private:
  void start_held_back() {
    for (const auto& [id, messages] : std::exchange(held_back_, {})) {
      started_.emplace(id, inner_->post(messages));
    }
  }

  void pause() {
    const int delay_us = std::uniform_int_distribution{0, longest_delay_us}(random_);
    std::this_thread::sleep_for(std::chrono::microseconds{delay_us});
  }

  std::unique_ptr<Transport> inner_;
  std::mt19937_64 random_;
  std::vector<std::pair<int, MessageSet>> held_back_;
  std::map<int, Ticket> started_;
  int next_id_ = 0;
};

}  // namespace

std::unique_ptr<Transport> make_delayed_transport(std::unique_ptr<Transport> inner, std::uint64_t seed) {
  return std::make_unique<DelayedTransport>(std::move(inner), seed);
}

}  // namespace hcp
