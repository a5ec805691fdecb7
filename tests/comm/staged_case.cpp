#include "tests/comm/staged_case.hpp"

#include <string>
#include <vector>

#include "tests/comm/test_patterns.hpp"

namespace hcp {

void StagedCase::exchange_under_one_tag(Transport& transport) {
  const int peer = transport.rank() ^ 1;
  if (peer >= transport.size()) return;
  // Many chunks, then messages that could overtake them.
  std::vector<DeviceBytes> outgoing;
  std::vector<DeviceBytes> arriving;
  for (const std::size_t bytes : {100'000U, 1U, 50'000U, 3U}) {
    const int number = static_cast<int>(outgoing.size());
    outgoing.emplace_back(*device.memory,
                          pattern({.from = transport.rank(), .to = peer, .tag = number}, bytes));
    arriving.emplace_back(*device.memory, bytes);
  }
  std::vector<Ticket> tickets;
  for (std::size_t i = 0; i < outgoing.size(); ++i) {
    tickets.push_back(transport.post({.sends = {{.peer = peer, .tag = 9, .parts = {outgoing[i].span()}}},
                                      .receives = {{.peer = peer, .tag = 9, .parts = {arriving[i].span()}}},
                                      .what = "in order"}));
  }
  for (std::size_t i = tickets.size(); i-- > 0;) tickets[i].wait();
  for (Ticket& ticket : tickets) ticket.finish();
  for (std::size_t i = 0; i < arriving.size(); ++i) {
    const int number = static_cast<int>(i);
    EXPECT_EQ(arriving[i].values(),
              pattern({.from = peer, .to = transport.rank(), .tag = number}, arriving[i].span().size()));
  }
}

}  // namespace hcp
