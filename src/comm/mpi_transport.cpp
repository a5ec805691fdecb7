#include "src/comm/mpi_transport.hpp"

#include <mpi.h>

#include <chrono>
#include <map>
#include <numeric>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/stopwatch.hpp"
#include "src/comm/mpi_message_type.hpp"
#include "src/comm/progress_thread.hpp"

namespace hcp {
namespace {

/// Tests before the core is offered to others: enough for a short message between neighbours, some 20 us.
constexpr int tests_before_yielding = 100;

/// After so long the waiting rank sleeps between tests. With more ranks than cores it would otherwise only
/// yield, and Linux's scheduler makes who has yielded most wait longest: a rank that then has work to do was
/// seen to stand still for a minute while its peers went on yielding (6.18, 8 ranks on 2 cores).
constexpr double yielding_s = 2e-4;
constexpr std::chrono::microseconds sleep_between_tests{20};

struct OpenSet {
  std::vector<MPI_Request> requests;        ///< receives, then sends
  std::vector<int> peers;                   ///< of the requests
  std::vector<std::int64_t> receive_bytes;  ///< of the receives
  std::string what;
};

std::vector<int> world_ranks_of(MPI_Comm comm, int size) {
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Group world = MPI_GROUP_NULL;
  check_mpi(MPI_Comm_group(comm, &group), "MPI_Comm_group");
  check_mpi(MPI_Comm_group(MPI_COMM_WORLD, &world), "MPI_Comm_group");
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<int> world_ranks(ranks.size());
  check_mpi(MPI_Group_translate_ranks(group, size, ranks.data(), world, world_ranks.data()),
            "MPI_Group_translate_ranks");
  check_mpi(MPI_Group_free(&group), "MPI_Group_free");
  check_mpi(MPI_Group_free(&world), "MPI_Group_free");
  return world_ranks;
}

class MpiTransport : public Transport {
 public:
  MpiTransport(const MpiCommunicator& comm, double timeout_s, Progress progress)
      : comm_{MpiCommunicator::duplicate(comm.get())},
        rank_{comm_.rank()},
        world_ranks_{world_ranks_of(comm_.get(), comm_.size())},
        timeout_s_{timeout_s} {
    if (progress == Progress::helper_thread && mpi_allows_helper_thread()) progress_.emplace(comm_);
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(world_ranks_.size()); }
  MemorySpace memory_space() const override { return MemorySpace::host; }

  Ticket post(const MessageSet& messages) override {
    for (const Message& message : messages.receives) check(message, messages.what);
    for (const Message& message : messages.sends) check(message, messages.what);

    OpenSet set{.requests = {}, .peers = {}, .receive_bytes = {}, .what = messages.what};
    set.requests.reserve(messages.receives.size() + messages.sends.size());
    for (const Message& message : messages.receives) {
      start_receive(message, set);
      set.receive_bytes.push_back(message.bytes());
    }
    for (const Message& message : messages.sends) {
      start_send(message, set);
      SentCount& count = sent_[{message.peer, message.tag}];
      count.bytes += message.bytes();
      ++count.messages;
    }
    fill_own_room(messages, rank_);
    const int id = next_id_++;
    open_.emplace(id, std::move(set));
    if (progress_) progress_->transfer_opened();
    return Ticket{*this, id};
  }

  std::vector<SentCount> sent() const override {
    std::vector<SentCount> counts;
    for (const auto& [key, count] : sent_) {
      counts.push_back(
          {.peer = key.first, .tag = key.second, .bytes = count.bytes, .messages = count.messages});
    }
    return counts;
  }
  void reset_counts() override { sent_.clear(); }

 protected:
  void wait(int ticket) override {
    auto node = open_.extract(ticket);
    OpenSet& set = node.mapped();
    std::vector<MPI_Status> statuses(set.requests.size());
    const double begin_s = now_s();
    for (int tests = 0; !all_finished(set, statuses); ++tests) {
      if (tests < tests_before_yielding) continue;
      if (progress_) progress_->rethrow_error();
      const double waited_s = now_s() - begin_s;
      if (waited_s > timeout_s_) throw TransportTimeout{missing_peers(set)};
      if (waited_s < yielding_s) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(sleep_between_tests);
      }
    }
    if (progress_) progress_->transfer_closed();
    check_received(set, statuses);
  }

 private:
  void check(const Message& message, const std::string& what) const {
    if (message.peer < 0 || message.peer >= size() || message.peer == rank_ || message.bytes() == 0) {
      throw std::logic_error{"rank " + std::to_string(rank_) + " of " + std::to_string(size()) +
                             " was told to exchange " + std::to_string(message.bytes()) + " B with rank " +
                             std::to_string(message.peer) + " (" + what + ")"};
    }
  }

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

  void check_received(const OpenSet& set, const std::vector<MPI_Status>& statuses) const {
    for (std::size_t i = 0; i < set.receive_bytes.size(); ++i) {
      MPI_Count received = 0;
      check_mpi(MPI_Get_elements_x(&statuses[i], MPI_BYTE, &received), "MPI_Get_elements_x");
      if (received != set.receive_bytes[i]) {
        throw std::logic_error{"world rank " + std::to_string(world_rank_of(rank_)) + " received " +
                               std::to_string(received) + " B instead of " +
                               std::to_string(set.receive_bytes[i]) + " B from world rank " +
                               std::to_string(world_rank_of(set.peers[i])) + " (" + set.what + ")"};
      }
    }
  }

  std::string missing_peers(OpenSet& set) const {
    std::ostringstream text;
    text << "world rank " << world_rank_of(rank_) << " waited " << timeout_s_ << " s";
    if (!set.what.empty()) text << " in " << set.what;
    const std::size_t receives = set.receive_bytes.size();
    list_unfinished(text, "; nothing yet from world rank", set, 0, receives);
    list_unfinished(text, "; not yet taken by world rank", set, receives, set.requests.size());
    return text.str();
  }

  void list_unfinished(std::ostream& text, const char* lead, OpenSet& set, std::size_t begin,
                       std::size_t end) const {
    const char* separator = lead;
    for (std::size_t i = begin; i < end; ++i) {
      int finished = 0;
      check_mpi(MPI_Test(&set.requests[i], &finished, MPI_STATUS_IGNORE), "MPI_Test");
      if (finished != 0) continue;
      text << separator << ' ' << world_rank_of(set.peers[i]);
      separator = ",";
    }
  }

  int world_rank_of(int rank) const { return world_ranks_[static_cast<std::size_t>(rank)]; }

  MpiCommunicator comm_;
  int rank_;
  std::vector<int> world_ranks_;  ///< of the ranks of comm_
  double timeout_s_;
  std::optional<ProgressThread> progress_;
  std::map<int, OpenSet> open_;
  int next_id_ = 0;
  std::map<std::pair<int, int>, SentCount> sent_;  ///< by (peer, tag)
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
