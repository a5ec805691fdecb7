#include "src/comm/nccl_transport.hpp"

#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "kernels/cuda/stream.hpp"
#include "kernels/stopwatch.hpp"
#include "src/comm/nccl_communicator.hpp"
#include "src/comm/nccl_groups.hpp"
#include "src/comm/nccl_library.hpp"
#include "src/comm/peers.hpp"
#include "src/comm/polling.hpp"
#include "src/comm/sent_counts.hpp"

namespace hcp {

namespace {

using cuda::Event;
using cuda::Stream;

/// What the transports of a rank have in common.
class RankState {
 public:
  RankState(std::shared_ptr<Stream> compute_stream, bool serialize_levels)
      : compute{std::move(compute_stream)},
        serialized{serialize_levels || !nccl_library().launches_in_order()} {}

  /// What `stream` is asked for from now on begins after the rank's last set of messages, if there was one
  /// and the sets are serialized.
  void wait_for_last_set(Stream& stream) const {
    if (serialized && posted_) stream.wait_for(last_set_);
  }
  void set_posted(const Stream& stream) {
    if (!serialized) return;
    last_set_.record(stream);
    posted_ = true;
  }

  std::shared_ptr<Stream> compute;
  bool serialized;
  OpenCommunicators communicators;

 private:
  Event last_set_{Event::Kind::order};
  bool posted_ = false;
};

/// Ascending, each once.
std::vector<int> peers_of(const std::vector<Message>& messages) {
  std::set<int> peers;
  for (const Message& message : messages) peers.insert(message.peer);
  return {peers.begin(), peers.end()};
}

class NcclTransport : public Transport {
 public:
  NcclTransport(const MpiCommunicator& comm, double timeout_s, std::shared_ptr<RankState> shared)
      : shared_{std::move(shared)},
        peers_{comm},
        timeout_s_{timeout_s},
        communicator_{comm, peers_, shared_->communicators} {}

  int rank() const override { return peers_.rank(); }
  int size() const override { return peers_.size(); }
  MemorySpace memory_space() const override { return MemorySpace::device; }

  Ticket post(const MessageSet& messages) override {
    peers_.check(messages);
    OpenSet set{.begun = take_event(),
                .done = take_event(),
                .what = messages.what,
                .receives_from = peers_of(messages.receives),
                .sends_to = peers_of(messages.sends)};
    ready_.record(*shared_->compute);
    stream_.wait_for(ready_);
    shared_->wait_for_last_set(stream_);
    set.begun.record(stream_);
    if (messages.collective == Collective::all_gather) {
      gather(messages);
    } else {
      exchange(messages);
    }
    set.done.record(stream_);
    shared_->set_posted(stream_);

    sent_.add(messages);
    const int id = next_id_++;
    open_.emplace(id, std::move(set));
    return Ticket{*this, id};
  }

  std::vector<SentCount> sent() const override { return sent_.list(); }
  void reset_counts() override { sent_.reset(); }

 protected:
  void wait(int ticket) override {
    OpenSet& set = open_.at(ticket);
    shared_->compute->wait_for(set.done);
    check_asynchronous_error(set);
  }

  void finish(int ticket) override {
    const auto found = open_.find(ticket);
    OpenSet& set = found->second;
    std::optional<double> begun_s;
    for (Polling polling; !set.done.has_passed(); polling.pause()) {
      check_asynchronous_error(set);
      if (!begun_s && set.begun.has_passed()) begun_s = now_s();
      if (begun_s && now_s() - *begun_s > timeout_s_) {
        shared_->communicators.abort_all();
        throw TransportTimeout{timeout_text(set)};
      }
    }
    check_asynchronous_error(set);
    free_events_.push_back(std::move(set.begun));
    free_events_.push_back(std::move(set.done));
    open_.erase(found);
  }

 private:
  struct OpenSet {
    Event begun;  ///< the stream has come to it
    Event done;
    std::string what;
    std::vector<int> receives_from;
    std::vector<int> sends_to;
  };

  void exchange(const MessageSet& messages) {
    const NcclLibrary& nccl = nccl_library();
    const ncclComm_t comm = communicator_.get();
    for (const std::vector<NcclOperation>& group : groups_of(messages, rank(), size())) {
      nccl.check(nccl.group_start(), "ncclGroupStart", comm);
      for (const auto& [kind, peer, part] : group) {
        if (kind == NcclOperation::Kind::send) {
          nccl.check(nccl.send(part.data(), part.size(), ncclUint8, peer, comm, stream_.get()), "ncclSend",
                     comm);
        } else {
          nccl.check(nccl.recv(part.data(), part.size(), ncclUint8, peer, comm, stream_.get()), "ncclRecv",
                     comm);
        }
      }
      nccl.check(nccl.group_end(), "ncclGroupEnd", comm);
    }
  }

  void gather(const MessageSet& messages) {
    const NcclLibrary& nccl = nccl_library();
    const ncclComm_t comm = communicator_.get();
    const std::vector<NcclGather> gathers = gathers_of(messages, rank(), size());
    if (gathers.empty()) return;
    nccl.check(nccl.group_start(), "ncclGroupStart", comm);
    for (const auto& [part, gathered] : gathers) {
      nccl.check(nccl.all_gather(part.data(), gathered, part.size(), ncclUint8, comm, stream_.get()),
                 "ncclAllGather", comm);
    }
    nccl.check(nccl.group_end(), "ncclGroupEnd", comm);
  }

  void check_asynchronous_error(const OpenSet& set) {
    const std::string error = communicator_.asynchronous_error();
    if (error.empty()) return;
    shared_->communicators.abort_all();
    throw std::runtime_error{"NCCL failed on world rank " + std::to_string(peers_.world_rank_of(rank())) +
                             (set.what.empty() ? "" : ", noticed in " + set.what) + ": " + error};
  }

  std::string timeout_text(const OpenSet& set) const {
    const std::string text = peers_.timeout_text(timeout_s_, set.what, set.receives_from, set.sends_to);
    const bool certain = set.receives_from.size() + set.sends_to.size() == 1;
    return certain ? text : text + " (at least one of these; NCCL does not tell which)";
  }

  Event take_event() {
    if (free_events_.empty()) return Event{Event::Kind::order};
    Event event = std::move(free_events_.back());
    free_events_.pop_back();
    return event;
  }

  std::shared_ptr<RankState> shared_;
  Peers peers_;
  double timeout_s_;
  Stream stream_{Stream::Priority::high};
  Event ready_{Event::Kind::order};
  std::vector<Event> free_events_;
  std::map<int, OpenSet> open_;  ///< by ticket
  int next_id_ = 0;
  SentCounts sent_;
  NcclCommunicator communicator_;  ///< last, so that nothing is under way when the events go
};

}  // namespace

class NcclTransports::Shared : public RankState {
 public:
  using RankState::RankState;
};

NcclSearch find_nccl() {
  try {
    return {.version = nccl_library().version(), .reason = {}};
  } catch (const std::runtime_error& error) {
    return {.version = {}, .reason = error.what()};
  }
}

std::string nccl_build() {
  return std::to_string(NCCL_MAJOR) + "." + std::to_string(NCCL_MINOR) + "." + std::to_string(NCCL_PATCH);
}

NcclTransports::NcclTransports(std::shared_ptr<cuda::Stream> compute, bool serialize_levels)
    : shared_{std::make_shared<Shared>(std::move(compute), serialize_levels)} {}
NcclTransports::~NcclTransports() = default;

std::unique_ptr<Transport> NcclTransports::make(const MpiCommunicator& comm, double timeout_s) {
  return std::make_unique<NcclTransport>(comm, timeout_s, shared_);
}

std::string NcclTransports::order() const {
  return shared_->serialized ? "serialized" : "in order of launch (NCCL_LAUNCH_ORDER_IMPLICIT)";
}

}  // namespace hcp
