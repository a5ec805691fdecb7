#include "src/comm/sent_counts.hpp"

namespace hcp {

void SentCounts::add(const MessageSet& messages) {
  for (const Message& message : messages.sends) {
    SentCount& count = counts_[{message.peer, message.tag}];
    count.peer = message.peer;
    count.tag = message.tag;
    count.bytes += message.bytes();
    ++count.messages;
  }
}

std::vector<SentCount> SentCounts::list() const {
  std::vector<SentCount> counts;
  for (const auto& [key, count] : counts_) counts.push_back(count);
  return counts;
}

}  // namespace hcp
