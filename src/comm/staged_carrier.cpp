#include "src/comm/staged_carrier.hpp"

#include <algorithm>

#include "kernels/stopwatch.hpp"
#include "src/comm/polling.hpp"

namespace hcp {

int StagedCarrier::open(StagedEnd& end, const MessageSet& messages) {
  forget_finished_sets();
  const int id = next_id_++;
  OpenSet& set = sets_[id];
  set.end = &end;
  set.what = messages.what;
  set.lanes = take_lanes();
  set.lanes->begun.record(*compute_);
  set.lanes->outward.wait_for(set.lanes->begun);
  set.lanes->inward.wait_for(set.lanes->begun);
  for (const Message& message : messages.receives) {
    set.receives.push_back(make(Direction::receive, set, message));
  }
  for (const Message& message : messages.sends) set.sends.push_back(make(Direction::send, set, message));
  advance();
  return id;
}

void StagedCarrier::wait(int id) {
  OpenSet& set = sets_.at(id);
  carry(set, &StagedMessage::is_handed_over);
  set.waited = true;
  // The host has seen that sends have left the device, and receives that are finished have arrived on it.
  if (!set.receives.empty()) {
    set.lanes->arrived.record(set.lanes->inward);
    compute_->wait_for(set.lanes->arrived);
  }
}

void StagedCarrier::finish(int id) {
  const auto found = sets_.find(id);
  if (found != sets_.end()) carry(found->second, &StagedMessage::is_finished);
}

void StagedCarrier::close(const StagedEnd& end) noexcept {
  std::erase_if(sets_, [&](const auto& entry) { return entry.second.end == &end; });
}

std::unique_ptr<StagedCarrier::Lanes> StagedCarrier::take_lanes() {
  if (idle_lanes_.empty()) return std::make_unique<Lanes>();
  std::unique_ptr<Lanes> lanes = std::move(idle_lanes_.back());
  idle_lanes_.pop_back();
  return lanes;
}

std::unique_ptr<StagedMessage> StagedCarrier::make(Direction direction, OpenSet& set,
                                                   const Message& message) {
  const bool sends = direction == Direction::send;
  MessageOrder& order = (sends ? set.end->sends : set.end->receives)[{message.peer, message.tag}];
  const StagedRoute route{.peers = set.end->peers,
                          .comm = set.end->comm.get(),
                          .peer = message.peer,
                          .tag = message.tag,
                          .order = order,
                          .what = set.what};
  if (path_ == DevicePath::direct) return make_direct_message(direction, route, message);
  return make_pinned_message(direction, route, message, sends ? set.lanes->outward : set.lanes->inward, pool_,
                             chunk_bytes_);
}

void StagedCarrier::forget_finished_sets() {
  for (auto it = sets_.begin(); it != sets_.end();) {
    OpenSet& set = it->second;
    if (set.waited && set.receives.empty() && set.sends.empty()) {
      idle_lanes_.push_back(std::move(set.lanes));
      it = sets_.erase(it);
    } else {
      ++it;
    }
  }
}

void StagedCarrier::advance() {
  for (auto& [id, set] : sets_) advance(set);
}

void StagedCarrier::advance(OpenSet& set) const {
  if (path_ == DevicePath::direct && !has_begun(set)) return;  // MPI knows nothing of streams
  for (Messages* messages : {&set.receives, &set.sends}) {
    for (const std::unique_ptr<StagedMessage>& message : *messages) message->advance();
    std::erase_if(*messages, [](const auto& message) { return message->is_finished(); });
  }
}

void StagedCarrier::carry(OpenSet& set, bool (StagedMessage::*reached)() const) {
  const auto all = [&](const Messages& messages) {
    return std::ranges::all_of(messages, [&](const auto& message) { return (*message.*reached)(); });
  };
  const double timeout_s = set.end->timeout_s;
  Polling polling;
  for (;;) {
    advance();
    if (all(set.receives) && all(set.sends)) return;
    const double waited_s = polling.pause();
    if (has_begun(set) && waited_s > timeout_s && now_s() - *set.begun_s > timeout_s) throw_timeout(set);
  }
}

bool StagedCarrier::has_begun(OpenSet& set) {
  if (!set.begun_s && set.lanes->begun.has_passed()) set.begun_s = now_s();
  return set.begun_s.has_value();
}

void StagedCarrier::throw_timeout(const OpenSet& set) const {
  std::vector<int> silent;
  for (const auto& message : set.receives) {
    if (!message->is_handed_over()) silent.push_back(message->peer());
  }
  std::vector<int> not_taken;
  for (const auto& message : set.sends) not_taken.push_back(message->peer());
  throw TransportTimeout{set.end->peers.timeout_text(set.end->timeout_s, set.what, silent, not_taken)};
}

}  // namespace hcp
