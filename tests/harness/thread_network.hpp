/// Ranks as threads of one process: transports without MPI, for many ranks on few cores.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "src/comm/transport.hpp"

namespace hcp {

/// Carries messages between the members of one communicator. Sends are buffered, so it never blocks a sender;
/// a receive that nothing is sent for throws after a minute.
class ThreadNetwork {
 public:
  [[nodiscard]] std::unique_ptr<Transport> transport(int rank, int size);

 private:
  friend class ThreadTransport;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<std::tuple<int, int, int>, std::deque<std::vector<std::byte>>> mailboxes_;  // (from, to, tag)
};

/// Runs `body(rank)` on as many threads; the first exception is thrown again after all have ended.
void run_as_threads(int ranks, const std::function<void(int rank)>& body);

}  // namespace hcp
