#include "src/comm/mpi_transport.hpp"

#include <mpi.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/comm/mpi_message_type.hpp"
#include "src/comm/peers.hpp"
#include "src/comm/polling.hpp"
#include "src/comm/progress_thread.hpp"
#include "src/comm/sent_counts.hpp"

namespace hcp {
namespace {

struct OpenSet {
  std::vector<MPI_Request> requests;        ///< receives, then sends
  std::vector<int> peers;                   ///< of the requests
  std::vector<std::int64_t> receive_bytes;  ///< of the receives
  std::string what;
};

class MpiTransport : public Transport {
 public:
  MpiTransport(const MpiCommunicator& comm, double timeout_s, Progress progress)
      : comm_{MpiCommunicator::duplicate(comm.get())}, peers_{comm_}, timeout_s_{timeout_s} {
    if (progress == Progress::helper_thread && mpi_allows_helper_thread()) progress_.emplace(comm_);
  }

  int rank() const override { return peers_.rank(); }
  int size() const override { return peers_.size(); }
  MemorySpace memory_space() const override { return MemorySpace::host; }

  Ticket post(const MessageSet& messages) override {
    peers_.check(messages);
    OpenSet set{.requests = {}, .peers = {}, .receive_bytes = {}, .what = messages.what};
    set.requests.reserve(messages.receives.size() + messages.sends.size());
    for (const Message& message : messages.receives) {
      start_receive(message, set);
      set.receive_bytes.push_back(message.bytes());
    }
    for (const Message& message : messages.sends) start_send(message, set);
    sent_.add(messages);
    fill_own_room(messages, peers_.rank());
    const int id = next_id_++;
    open_.emplace(id, std::move(set));
    if (progress_) progress_->transfer_opened();
    return Ticket{*this, id};
  }

  std::vector<SentCount> sent() const override { return sent_.list(); }
  void reset_counts() override { sent_.reset(); }

 protected:
  void wait(int ticket) override {
    auto node = open_.extract(ticket);
    OpenSet& set = node.mapped();
    std::vector<MPI_Status> statuses(set.requests.size());
    Polling polling;
    while (!all_finished(set, statuses)) {
      const double waited_s = polling.pause();
      if (waited_s > 0.0 && progress_) progress_->rethrow_error();
      if (waited_s > timeout_s_) throw TransportTimeout{missing_peers(set)};
    }
    if (progress_) progress_->transfer_closed();
    for (std::size_t i = 0; i < set.receive_bytes.size(); ++i) {
      peers_.check_received(statuses[i], set.peers[i], set.receive_bytes[i], set.what);
    }
  }

 private:
  void start_receive(const Message& message, OpenSet& set) const {
    const MpiMessageType type{message.parts};
    set.peers.push_back(message.peer);
    check_mpi(MPI_Irecv(type.buffer(), type.count(), type.get(), message.peer, message.tag, comm_.get(),
                        &set.requests.emplace_back(MPI_REQUEST_NULL)),
              "MPI_Irecv");
  }

  void start_send(const Message& message, OpenSet& set) const {
    const MpiMessageType type{message.parts};
    set.peers.push_back(message.peer);
    check_mpi(MPI_Isend(type.buffer(), type.count(), type.get(), message.peer, message.tag, comm_.get(),
                        &set.requests.emplace_back(MPI_REQUEST_NULL)),
              "MPI_Isend");
  }

  static bool all_finished(OpenSet& set, std::vector<MPI_Status>& statuses) {
    int finished = 0;
    const int code =
        MPI_Testall(static_cast<int>(set.requests.size()), set.requests.data(), &finished, statuses.data());
    if (code == MPI_ERR_IN_STATUS) {
      for (const MPI_Status& status : statuses) {
        if (status.MPI_ERROR != MPI_ERR_PENDING) check_mpi(status.MPI_ERROR, "MPI_Testall");
      }
    }
    check_mpi(code, "MPI_Testall");
    return finished != 0;
  }

  std::string missing_peers(OpenSet& set) const {
    const std::size_t receives = set.receive_bytes.size();
    return peers_.timeout_text(timeout_s_, set.what, unfinished(set, 0, receives),
                               unfinished(set, receives, set.requests.size()));
  }

  static std::vector<int> unfinished(OpenSet& set, std::size_t begin, std::size_t end) {
    std::vector<int> peers;
    for (std::size_t i = begin; i < end; ++i) {
      int finished = 0;
      check_mpi(MPI_Test(&set.requests[i], &finished, MPI_STATUS_IGNORE), "MPI_Test");
      if (finished == 0) peers.push_back(set.peers[i]);
    }
    return peers;
  }

  MpiCommunicator comm_;
  Peers peers_;
  double timeout_s_;
  std::optional<ProgressThread> progress_;
  std::map<int, OpenSet> open_;
  int next_id_ = 0;
  SentCounts sent_;
};

}  // namespace

bool mpi_allows_helper_thread() {
  int level = MPI_THREAD_SINGLE;
  check_mpi(MPI_Query_thread(&level), "MPI_Query_thread");
  return level >= MPI_THREAD_MULTIPLE;
}

std::unique_ptr<Transport> make_mpi_transport(const MpiCommunicator& comm, double timeout_s,
                                              Progress progress) {
  return std::make_unique<MpiTransport>(comm, timeout_s, progress);
}

}  // namespace hcp
