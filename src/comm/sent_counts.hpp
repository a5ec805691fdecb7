/// What a transport has posted.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "src/comm/transport.hpp"

namespace hcp {

/// By peer and tag.
class SentCounts {
 public:
  void add(const MessageSet& messages);
  void reset() { counts_.clear(); }
  /// As Transport::sent.
  [[nodiscard]] std::vector<SentCount> list() const;

 private:
  std::map<std::pair<int, int>, SentCount> counts_;
};

}  // namespace hcp
