#include "tests/software_gpu/engine.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>
#include <thread>
#include <utility>

#include "tests/software_gpu/gpu.hpp"

namespace hcp::software_gpu {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr std::chrono::microseconds shortest_pause{50};
constexpr std::chrono::microseconds longest_pause{1000};  // many ranks may wait on few cores

}  // namespace

void Stream::submit(std::string name, Advance advance) {
  submit(std::move(name), std::move(advance), false);
}

void Stream::submit_mark(std::string name, Advance advance) {
  submit(std::move(name), std::move(advance), true);
}

Clock Stream::submit_early_mark(std::string name, Advance advance) {
  const auto work = std::ranges::find(queue_.rbegin(), queue_.rend(), false, &Queued::mark);
  if (work == queue_.rend()) {  // it is done already
    advance({}, true);
  } else {
    queue_.insert(std::prev(work.base()), {.operation = {.name = std::move(name),
                                                         .stream = number_,
                                                         .device = device_,
                                                         .stamp = {},
                                                         .clock = {}},
                                           .advance = std::move(advance),
                                           .submitted = ++engine_.submissions_,
                                           .mark = true});
  }
  return before_work_;
}

void Stream::submit(std::string name, Advance advance, bool mark) {
  if (!mark) {
    before_work_ = clock_;
  }
  ++last_.count;
  clock_.join(engine_.host());
  clock_.add(last_);
  queue_.push_back(
      {.operation =
           {.name = std::move(name), .stream = number_, .device = device_, .stamp = last_, .clock = clock_},
       .advance = std::move(advance),
       .submitted = ++engine_.submissions_,
       .mark = mark});
  engine_.submitted();
}

std::shared_ptr<Stream> Engine::add_stream(int device) {
  Stamp last{.slot = slots_, .count = 0};
  if (free_slots_.empty()) {
    ++slots_;
  } else {
    last = free_slots_.back();
    free_slots_.pop_back();
  }
  const std::shared_ptr<Stream> stream{new Stream{*this, ++last_number_, device, last}};
  streams_.push_back(stream);
  return stream;
}

void Engine::remove_stream(const std::shared_ptr<Stream>& stream) {
  std::erase(streams_, stream);
  removed_.push_back(stream);
  reuse_slots();
}

/// A later stream in the same slot comes after the host and so after all that was in the slot before.
void Engine::reuse_slots() {
  std::erase_if(removed_, [this](const std::shared_ptr<Stream>& stream) {
    const bool known = stream->idle() && (stream->last_.count == 0 || host_.covers(stream->last_));
    if (known) {
      free_slots_.push_back(stream->last_);
    }
    return known;
  });
}

void Engine::submitted() {
  for (int left = schedule_.operations_after_call(); left > 0 && step(); --left) {
  }
}

bool Engine::try_head(Stream& stream) {
  Stream::Queued& head = stream.queue_.front();
  const bool first = !std::exchange(head.started, true);
  bool done = true;
  try {
    std::optional<Memory::Opened> opened;
    if (!head.mark) {
      opened.emplace(gpu().memory);
    }
    done = head.advance(head.operation, first);
  } catch (...) {
    stream.queue_.pop_front();
    throw;
  }
  if (done) {
    stream.queue_.pop_front();
  }
  return done;
}

bool Engine::step() {
  std::vector<Schedule::Head> heads;
  for (const auto* streams : {&streams_, &removed_}) {
    for (const std::shared_ptr<Stream>& stream : *streams) {
      if (!stream->idle()) {
        heads.push_back({.stream = stream.get(),
                         .number = stream->number_,
                         .submitted = stream->queue_.front().submitted});
      }
    }
  }
  schedule_.arrange(heads);
  return std::ranges::any_of(heads, [this](const Schedule::Head& head) { return try_head(*head.stream); });
}

bool Engine::step_until(const std::function<bool()>& done) {
  const Memory::Opened opened{gpu().memory};  // once for all of them
  bool moved = false;
  while (!done() && step()) {
    moved = true;
  }
  return moved;
}

std::string Engine::wait(std::unique_lock<std::mutex>& lock, const std::function<bool()>& done) {
  SteadyClock::time_point last = SteadyClock::now();
  std::chrono::microseconds pause = shortest_pause;
  while (!done()) {
    if (step_until(done)) {
      last = SteadyClock::now();
      pause = shortest_pause;
      continue;
    }
    if (std::chrono::duration<double>(SteadyClock::now() - last).count() > patience_s_) {
      return "nothing has moved for " + std::to_string(patience_s_) + " s; next are" + heads();
    }
    lock.unlock();
    std::this_thread::sleep_for(pause);
    lock.lock();
    pause = std::min(2 * pause, longest_pause);
  }
  return {};
}

std::string Engine::drain() {
  while (step()) {
  }
  for (const auto* streams : {&streams_, &removed_}) {
    for (const std::shared_ptr<Stream>& stream : *streams) {
      if (stream->idle()) {
        host_.join(stream->clock_);
      }
    }
  }
  reuse_slots();
  return heads();
}

std::string Engine::heads() const {
  std::string text;
  for (const auto* streams : {&streams_, &removed_}) {
    for (const std::shared_ptr<Stream>& stream : *streams) {
      if (!stream->idle()) {
        const Stream::Queued& head = stream->queue_.front();
        text += " [stream " + std::to_string(stream->number_) + ": '" + head.operation.name + "'" +
                (head.started ? ", begun" : "") + ", " + std::to_string(stream->queue_.size() - 1) +
                " behind it]";
      }
    }
  }
  return text;
}

bool Engine::idle(int device) const {
  const auto idle = [device](const std::shared_ptr<Stream>& stream) {
    return stream->device_ != device || stream->idle();
  };
  return std::ranges::all_of(streams_, idle) && std::ranges::all_of(removed_, idle);
}

Clock Engine::clock_of(int device) const {
  Clock clock;
  for (const auto* streams : {&streams_, &removed_}) {
    for (const std::shared_ptr<Stream>& stream : *streams) {
      if (stream->device_ == device) {
        clock.join(stream->clock_);
      }
    }
  }
  return clock;
}

void Engine::host_waited_for(const Clock& clock) {
  host_.join(clock);
  for (const std::string& finding : gpu().host_copies.settle(host_)) {
    report(finding);
  }
  reuse_slots();
}

Operation Engine::host_operation(std::string name) {
  ++host_last_.count;
  host_.add(host_last_);
  return {.name = std::move(name), .stream = 0, .device = 0, .stamp = host_last_, .clock = host_};
}

}  // namespace hcp::software_gpu
