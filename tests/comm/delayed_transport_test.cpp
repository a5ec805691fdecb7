#include "tests/harness/delayed_transport.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <stdexcept>
#include <vector>

namespace hcp {
namespace {

/// What is sent is received at once, by the same rank.
class Loopback : public Transport {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  MemorySpace memory_space() const override { return MemorySpace::host; }
  Ticket post(const MessageSet& messages) override {
    for (std::size_t i = 0; i < messages.sends.size(); ++i) {
      std::ranges::copy(messages.sends[i].parts.front(), messages.receives[i].parts.front().begin());
      ++sent_;
    }
    return Ticket{*this, 0};
  }
  std::vector<SentCount> sent() const override {
    return {{.peer = 1, .tag = 0, .bytes = sent_, .messages = sent_}};
  }
  void reset_counts() override { sent_ = 0; }

 protected:
  void wait(int) override {}

 private:
  std::int64_t sent_ = 0;
};

struct Exchange {
  std::array<std::byte, 1> outgoing{};
  std::array<std::byte, 1> arriving{};
  MessageSet messages() {
    return {.sends = {{.peer = 1, .tag = 0, .parts = {outgoing}}},
            .receives = {{.peer = 1, .tag = 0, .parts = {arriving}}},
            .what = ""};
  }
};

constexpr int rounds = 40;

TEST(DelayedTransport, DeliversWhatTheInnerOneDelivers) {
  const auto transport = make_delayed_transport(std::make_unique<Loopback>(), 1);
  for (int round = 0; round < rounds; ++round) {
    std::array<Exchange, 3> exchanges;
    std::vector<Ticket> tickets;
    for (std::size_t i = 0; i < exchanges.size(); ++i) {
      exchanges[i].outgoing = {std::byte(round * 3 + static_cast<int>(i))};
      tickets.push_back(transport->post(exchanges[i].messages()));
    }
    for (std::size_t i = tickets.size(); i-- > 0;) tickets[i].wait();
    for (const Exchange& exchange : exchanges) EXPECT_EQ(exchange.arriving, exchange.outgoing);
  }
  EXPECT_EQ(transport->sent().at(0).messages, 3 * rounds);
}

TEST(DelayedTransport, RefusesEverySendBufferThatIsOverwrittenTooEarly) {
  const auto transport = make_delayed_transport(std::make_unique<Loopback>(), 2);
  int arrived_wrong = 0;
  for (int round = 0; round < rounds; ++round) {
    Exchange exchange{.outgoing = {std::byte{1}}, .arriving = {}};
    Ticket ticket = transport->post(exchange.messages());
    exchange.outgoing = {std::byte{2}};
    EXPECT_THAT([&] { ticket.wait(); }, testing::ThrowsMessage<std::logic_error>(
                                            testing::HasSubstr("byte 0 of the message to rank 1")));
    if (exchange.arriving[0] == std::byte{2}) ++arrived_wrong;
  }
  // Whether the inner transport had read the buffer by then is a matter of luck; neither way goes unnoticed.
  EXPECT_GT(arrived_wrong, rounds / 4);
  EXPECT_LT(arrived_wrong, rounds);
}

TEST(DelayedTransport, ASendBufferBelongsToItsOwnWaitAlone) {
  const auto transport = make_delayed_transport(std::make_unique<Loopback>(), 4);
  Exchange first{.outgoing = {std::byte{1}}, .arriving = {}};
  Exchange second{.outgoing = {std::byte{1}}, .arriving = {}};
  Ticket first_ticket = transport->post(first.messages());
  Ticket second_ticket = transport->post(second.messages());
  second_ticket.wait();
  second.outgoing = {std::byte{2}};
  first_ticket.wait();
  EXPECT_EQ(second.arriving[0], std::byte{1});
}

TEST(DelayedTransport, ShowsAReceiveBufferThatIsReadTooEarly) {
  const auto transport = make_delayed_transport(std::make_unique<Loopback>(), 3);
  int wrong = 0;
  for (int round = 0; round < rounds; ++round) {
    Exchange exchange{.outgoing = {std::byte{1}}, .arriving = {std::byte{1}}};
    Ticket ticket = transport->post(exchange.messages());
    if (exchange.arriving[0] == std::byte{0xFF}) ++wrong;
    ticket.wait();
  }
  EXPECT_GT(wrong, rounds / 4);
}

}  // namespace
}  // namespace hcp
