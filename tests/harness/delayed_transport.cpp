#include "tests/harness/delayed_transport.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hcp {
namespace {

/// The messages of a set and what their send buffers hold while they are in flight.
class SentBytes {
 public:
  explicit SentBytes(const MessageSet& messages) : messages_{messages} {
    for (const Message& message : messages.sends) at_post_.push_back(bytes_of(message));
  }
  /// @throws std::logic_error if a send buffer has changed since
  void require_unchanged() const {
    for (std::size_t i = 0; i < at_post_.size(); ++i) {
      const Message& message = messages_.sends[i];
      const std::vector<std::byte> now = bytes_of(message);
      const auto changed = std::ranges::mismatch(at_post_[i], now).in1;
      if (changed != at_post_[i].end()) {
        throw std::logic_error{"a send buffer was overwritten before its wait: byte " +
                               std::to_string(changed - at_post_[i].begin()) + " of the message to rank " +
                               std::to_string(message.peer) + " with tag " + std::to_string(message.tag) +
                               "; " + messages_.what};
      }
    }
  }

 private:
  static std::vector<std::byte> bytes_of(const Message& message) {
    std::vector<std::byte> bytes;
    for (const std::span<std::byte> part : message.parts) {
      bytes.insert(bytes.end(), part.begin(), part.end());
    }
    return bytes;
  }

  MessageSet messages_;
  std::vector<std::vector<std::byte>> at_post_;  ///< [send]
};

class DelayedTransport : public Transport {
 public:
  DelayedTransport(std::unique_ptr<Transport> inner, std::uint64_t seed,
                   std::chrono::microseconds longest_delay)
      : inner_{std::move(inner)},
        longest_delay_{longest_delay},
        random_{seed * 1'000'003 + static_cast<std::uint64_t>(inner_->rank())} {}

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
    if (messages.collective == Collective::all_gather) {
      for (const std::span<std::byte> part : own_room(messages, rank()))
        std::ranges::fill(part, std::byte{0xFF});
    }
    const int id = next_id_++;
    held_back_.emplace_back(id, messages);
    sent_.emplace(id, messages);
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
    sent_.extract(ticket).mapped().require_unchanged();
  }

 private:
  void start_held_back() {
    for (const auto& [id, messages] : std::exchange(held_back_, {})) {
      started_.emplace(id, inner_->post(messages));
    }
  }

  void pause() {
    const auto longest = longest_delay_.count();
    std::this_thread::sleep_for(
        std::chrono::microseconds{std::uniform_int_distribution<decltype(longest)>{0, longest}(random_)});
  }

  std::unique_ptr<Transport> inner_;
  std::chrono::microseconds longest_delay_;
  std::mt19937_64 random_;
  std::vector<std::pair<int, MessageSet>> held_back_;
  std::map<int, Ticket> started_;
  std::map<int, SentBytes> sent_;  ///< by ticket, until its wait
  int next_id_ = 0;
};

}  // namespace

std::unique_ptr<Transport> make_delayed_transport(std::unique_ptr<Transport> inner, std::uint64_t seed,
                                                  std::chrono::microseconds longest_delay) {
  return std::make_unique<DelayedTransport>(std::move(inner), seed, longest_delay);
}

}  // namespace hcp
