#include "tests/ptx/block.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>
#include <random>
#include <utility>

#include "tests/ptx/control_instructions.hpp"
#include "tests/ptx/lane_loop.hpp"

namespace hcp::ptx {

Block::Block(const LaunchState& launch)
    : launch_{launch},
      shared_{launch.shared_bytes(), launch.kernel.shared_access_bytes, launch.warps()},
      order_(static_cast<std::size_t>(launch.warps())) {
  for (int warp = 0; warp < launch.warps(); ++warp) {
    warps_.push_back(std::make_unique<Warp>(*this, warp));
  }
}

std::uint32_t Block::linear_index() const {
  return index_[0] + launch_.grid[0] * (index_[1] + launch_.grid[1] * index_[2]);
}

void Block::reset(const Extent& index) {
  index_ = index;
  shared_.reset();
  for (const auto& warp : warps_) {
    warp->reset();
  }
  barriers_.fill({});
  barriers_of_all_ = 0;
  failed_ = false;
  counters_ = {};
  findings_.clear();
}

void Block::run(const Extent& index) {
  reset(index);
  std::iota(order_.begin(), order_.end(), 0);
  std::optional<std::mt19937> random;
  if (launch_.options.schedule_seed != 0) {
    random.emplace(launch_.options.schedule_seed + linear_index());
  }
  while (!failed_ && live_warps() != 0) {
    if (random) {
      std::ranges::shuffle(order_, *random);
    }
    run_warps();
  }
}

void Block::run_warps() {
  bool progress = false;
  for (const std::size_t index : order_) {
    Warp& warp = *warps_[index];
    if (warp.live() == 0 || warp.is_at_barrier() || failed_) {
      continue;
    }
    progress = true;
    if (warp.run() == Warp::Stop::ended) {
      for (Barrier& barrier : barriers_) {  // which may have waited for this warp only
        release_if_complete(barrier);
      }
    }
  }
  if (!progress && !failed_) {
    report_deadlock();
    fail();
  }
}

std::uint32_t Block::live_warps() const {
  std::uint32_t live = 0;
  for (const auto& warp : warps_) {
    live |= static_cast<std::uint32_t>(warp->live() != 0) << warp->id();
  }
  return live;
}

void Block::arrive(Warp& warp, const Instruction& instruction, const Arrival& arrival) {
  Barrier& barrier = barriers_.at(arrival.barrier);
  if (barrier.arrived_warps == 0) {
    barrier.threads = arrival.threads;
  } else if (barrier.threads != arrival.threads) {
    warp.report(instruction, FindingKind::bad_barrier, std::countr_zero(warp.live()), 0,
                "barrier " + std::to_string(arrival.barrier) + " is asked for " +
                    std::to_string(arrival.threads) + " threads, by an earlier warp for " +
                    std::to_string(barrier.threads) + " (0: all)");
  }
  barrier.arrived_threads += warp_lanes;  // barriers count warps, whether or not all of their lanes live
  barrier.arrived_warps |= 1U << warp.id();
  barrier.true_threads += static_cast<std::uint32_t>(std::popcount(arrival.predicate & warp.live()));
  barrier.counted_threads += static_cast<std::uint32_t>(std::popcount(warp.live()));
  barrier.known.join(warp.clock());
  if (arrival.waits) {
    warp.wait_at_barrier(true);
    barrier.waiting.emplace_back(&warp, arrival.reduction);
  } else {
    warp.clock().tick(launch_.warps());
  }
  if (barrier.threads != 0 && barrier.arrived_threads > barrier.threads) {
    warp.report(instruction, FindingKind::bad_barrier, std::countr_zero(warp.live()), 0,
                "more threads arrive at barrier " + std::to_string(arrival.barrier) + " than the " +
                    std::to_string(barrier.threads) + " that it waits for");
  }
  release_if_complete(barrier);
}

void Block::release_if_complete(Barrier& barrier) {
  const std::uint32_t live = live_warps();
  const bool complete = barrier.threads == 0 ? (live & ~barrier.arrived_warps) == 0
                                             : barrier.arrived_threads >= barrier.threads;
  if (barrier.arrived_warps == 0 || !complete) {
    return;
  }
  const Barrier finished = std::exchange(barrier, {});
  std::uint32_t released = 0;
  for (const auto& [warp, reduction] : finished.waiting) {
    warp->clock().join(finished.known);
    warp->clock().tick(launch_.warps());
    warp->wait_at_barrier(false);
    released |= 1U << warp->id();
    if (reduction != nullptr) {
      write_barrier_reduction(*warp, *reduction, finished.true_threads, finished.counted_threads);
    }
  }
  barriers_of_all_ += (live & ~released) == 0 ? 1 : 0;
}

void Block::report_deadlock() {
  for (std::size_t id = 0; id < barriers_.size(); ++id) {
    if (!barriers_[id].waiting.empty()) {
      Warp& warp = *barriers_[id].waiting.front().first;
      warp.report(warp.instruction_before(), FindingKind::deadlock, std::countr_zero(warp.live()), 0,
                  "all warps that have not ended wait; barrier " + std::to_string(id) + " has " +
                      std::to_string(barriers_[id].arrived_threads) + " threads and waits for " +
                      std::to_string(barriers_[id].threads) + " (0: all)");
    }
  }
}

void Block::report(Finding finding) {
  const auto same = std::ranges::find_if(findings_, [&](const Finding& other) {
    return other.kind == finding.kind && other.line == finding.line;
  });
  if (same != findings_.end()) {
    ++same->occurrences;
    return;
  }
  finding.kernel = launch_.kernel.name;
  finding.block = index_;
  findings_.push_back(std::move(finding));
  failed_ = failed_ || findings_.size() >= launch_.options.max_findings;
}

}  // namespace hcp::ptx
