#include "tests/simt/block.hpp"

#include <algorithm>
#include <array>
#include <boost/context/fixedsize_stack.hpp>
#include <cstring>
#include <limits>
#include <new>
#include <string_view>
#include <utility>

namespace hcp::simt {
namespace {

namespace context = boost::context;

constexpr std::size_t shared_alignment = 128;
constexpr std::size_t stack_bytes = 256 * 1024;

std::string_view name_of(Meeting meeting) {
  constexpr std::array<std::string_view, 4> names{"exchange", "load_matrices", "load_transposed_matrices",
                                                  "multiply"};
  return names.at(static_cast<std::size_t>(meeting));
}

/// Stacks are used again: making one costs more than a small block.
class PooledStacks {
 public:
  context::stack_context allocate() {
    if (pool().empty()) {
      return context::fixedsize_stack{stack_bytes}.allocate();
    }
    const context::stack_context stack = pool().back();
    pool().pop_back();
    return stack;
  }
  void deallocate(context::stack_context& stack) { pool().push_back(stack); }

 private:
  struct Pool : std::vector<context::stack_context> {
    Pool() = default;
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;
    ~Pool() {
      for (context::stack_context& stack : *this) {
        context::fixedsize_stack{stack_bytes}.deallocate(stack);
      }
    }
  };
  static Pool& pool() {
    static Pool stacks;
    return stacks;
  }
};

/// Not longer than asked for, so that tools which watch allocations see what lies beyond the end.
std::byte* allocate_shared(int bytes) {
  return static_cast<std::byte*>(
      ::operator new (static_cast<std::size_t>(bytes), std::align_val_t{shared_alignment}));
}
void deallocate_shared(std::byte* memory) {
  ::operator delete (memory, std::align_val_t{shared_alignment});
}

}  // namespace

Block::Block(const Launch& launch, int x, int y, const std::function<void()>& kernel)
    : launch_{launch},
      x_{x},
      y_{y},
      shared_memory_{allocate_shared(launch.shared_bytes), deallocate_shared},
      warps_(static_cast<std::size_t>(launch.threads / warp_lanes)),
      threads_(static_cast<std::size_t>(launch.threads)),
      random_{launch.seed + 7919U * static_cast<unsigned>(x) + static_cast<unsigned>(y)} {
  std::memset(shared_memory_.get(), 0xFF, static_cast<std::size_t>(launch.shared_bytes));  // NaN
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    threads_[i].number = static_cast<int>(i);
    start(threads_[i], kernel);
  }
}

void Block::start(Thread& thread, const std::function<void()>& kernel) {
  const auto body = [this, &thread, &kernel](context::fiber&& scheduler) {
    thread.scheduler = &scheduler;
    kernel();
    thread.done = true;
    if (thread.copies.pending() && !fault_) {
      fault_ = "thread " + std::to_string(thread.number) + " ends with a copy for which it has not waited";
    }
    return std::move(scheduler);
  };
  thread.fiber = context::fiber{std::allocator_arg, PooledStacks{}, body};
}

void Block::run() {
  current_ = this;
  while (std::ranges::any_of(threads_, [](const Thread& thread) { return !thread.done; })) {
    const bool moved = resume_in_order();
    if (fault_) {
      throw Fault{*fault_};
    }
    if (!moved) {
      throw Fault{"all threads wait: " + std::to_string(at_barrier_.size()) + " of " +
                  std::to_string(threads_.size()) + " at a barrier, the others for lanes of their warp"};
    }
  }
}

bool Block::resume_in_order() {
  constexpr int all_rounds = std::numeric_limits<int>::max();
  const std::size_t warps = warps_.size();
  const bool backwards =
      launch_.order == Order::abreast_backwards || launch_.order == Order::warp_wise_backwards;
  bool moved = false;
  if (launch_.order == Order::random) {
    for (std::size_t i = 0; i < warps; ++i) {
      constexpr int longest_burst_log = 12;
      const int rounds = 1 << (random_() % longest_burst_log);
      moved |= resume_warp(random_() % warps, rounds);
    }
  }
  for (std::size_t i = 0; i < warps && !(moved && launch_.order == Order::random); ++i) {
    const std::size_t warp = backwards ? warps - 1 - i : i;
    const bool abreast = launch_.order == Order::abreast || launch_.order == Order::abreast_backwards;
    moved |= abreast ? resume_lanes(warp, backwards) : resume_warp(warp, all_rounds);
  }
  return moved;
}

bool Block::resume_warp(std::size_t warp, int most_rounds) {
  bool moved = false;
  for (int round = 0; round < most_rounds; ++round) {
    if (!resume_lanes(warp, launch_.order == Order::warp_wise_backwards)) {
      return moved;
    }
    moved = true;
  }
  return moved;
}

bool Block::resume_lanes(std::size_t warp, bool backwards) {
  bool moved = false;
  for (std::size_t i = 0; i < warp_lanes; ++i) {
    const std::size_t lane = backwards ? warp_lanes - 1 - i : i;
    moved |= resume(threads_[warp * warp_lanes + lane]);
  }
  return moved;
}

bool Block::resume(Thread& thread) {
  if (thread.done || thread.waits || fault_) {
    return false;
  }
  running_ = &thread;
  thread.fiber = std::move(thread.fiber).resume();
  return true;
}

void Block::leave() {
  context::fiber& scheduler = *running_->scheduler;
  scheduler = std::move(scheduler).resume();
}

void Block::wait() {
  running_->waits = true;
  leave();
}

void Block::fail(const std::string& message) {
  fault_ = "thread " + std::to_string(running_->number) + ": " + message;
  for (;;) {
    leave();  // it comes back only to be unwound
  }
}

void Block::check_shared(const void* pointer, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const auto begin = reinterpret_cast<std::uintptr_t>(shared_memory_.get());
  if (address % bytes != 0) {
    fail("shared memory not aligned to " + std::to_string(bytes) + " bytes");
  }
  if (address < begin || address + bytes > begin + static_cast<std::size_t>(launch_.shared_bytes)) {
    fail("an address outside of shared memory");
  }
}

void Block::barrier() {
  at_barrier_.push_back(running_);
  if (at_barrier_.size() < threads_.size()) {
    wait();
    return;
  }
  for (Thread* thread : at_barrier_) {
    thread->waits = false;
  }
  at_barrier_.clear();
}

void Block::meet(Meeting meeting, void* argument, void (*work)(void* const* arguments)) {
  const auto lane = static_cast<std::size_t>(running_->number % warp_lanes);
  Warp& warp = warps_[static_cast<std::size_t>(running_->number / warp_lanes)];
  if (warp.arrived == 0) {
    warp.meeting = meeting;
  } else if (warp.meeting != meeting) {
    fail("at " + std::string{name_of(meeting)} + " while lanes of its warp are at " +
         std::string{name_of(warp.meeting)});
  }
  warp.arguments[lane] = argument;
  warp.arrived |= 1U << lane;
  if (warp.arrived != ~0U) {
    wait();
    return;
  }
  work(warp.arguments);
  warp.arrived = 0;
  Thread* const first = &threads_[static_cast<std::size_t>(running_->number) - lane];
  for (Thread* thread = first; thread < first + warp_lanes; ++thread) {
    thread->waits = false;
  }
}

}  // namespace hcp::simt
