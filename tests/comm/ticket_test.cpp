#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "src/comm/transport.hpp"

namespace hcp {
namespace {

/// Moves nothing; remembers which tickets were waited for.
class IdleTransport : public Transport {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  MemorySpace memory_space() const override { return MemorySpace::host; }
  Ticket post(const MessageSet&) override { return Ticket{*this, next_id_++}; }
  std::vector<SentCount> sent() const override { return {}; }
  void reset_counts() override {}
  std::vector<int> waited;

 protected:
  void wait(int ticket) override { waited.push_back(ticket); }

 private:
  int next_id_ = 0;
};

TEST(Message, BytesAreThoseOfAllParts) {
  std::array<std::byte, 10> memory{};
  const std::span<std::byte> all{memory};
  EXPECT_EQ((Message{.peer = 0, .tag = 0, .parts = {}}.bytes()), 0);
  EXPECT_EQ((Message{.peer = 0, .tag = 0, .parts = {all.first(3), all.last(4)}}.bytes()), 7);
}

TEST(Ticket, IsWaitedForOnceWhereverItWasMoved) {
  IdleTransport transport;
  Ticket first = transport.post({});
  Ticket second = transport.post({});
  Ticket moved{std::move(first)};
  moved.wait();
  moved = std::move(second);
  moved.wait();
  EXPECT_EQ(transport.waited, (std::vector<int>{0, 1}));
  EXPECT_THROW(moved.wait(), std::logic_error);
}

TEST(TicketDeathTest, DroppingAborts) {
  IdleTransport transport;
  EXPECT_DEATH({ const Ticket dropped = transport.post({}); }, "never waited for");
}

TEST(TicketDeathTest, OverwritingAborts) {
  IdleTransport transport;
  EXPECT_DEATH(
      {
        Ticket overwritten = transport.post({});
        overwritten = transport.post({});
      },
      "never waited for");
}

TEST(Ticket, MayBeDroppedWhileAnExceptionUnwinds) {
  IdleTransport transport;
  const auto fail_between_post_and_wait = [&] {
    const Ticket dropped = transport.post({});
    throw std::runtime_error{"failure in a computation"};
  };
  EXPECT_THROW(fail_between_post_and_wait(), std::runtime_error);
  EXPECT_TRUE(transport.waited.empty());
}

}  // namespace
}  // namespace hcp
