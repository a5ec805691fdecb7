#include "src/comm/polling.hpp"

#include <chrono>
#include <thread>

#include "kernels/stopwatch.hpp"

namespace hcp {
namespace {

/// Before the core is offered to others: enough for a short message between neighbours, some 20 us.
constexpr int looks_before_yielding = 100;

/// After so long the waiting rank sleeps between looks. With more ranks than cores it would otherwise only
/// yield, and Linux's scheduler makes who has yielded most wait longest: a rank that then has work to do was
/// seen to stand still for a minute while its peers went on yielding (6.18, 8 ranks on 2 cores).
constexpr double yielding_s = 2e-4;
constexpr std::chrono::microseconds sleep_between_looks{20};

}  // namespace

double Polling::pause() {
  if (looks_ == 0) begin_s_ = now_s();
  if (++looks_ <= looks_before_yielding) return 0.0;
  const double waited_s = now_s() - begin_s_;
  if (waited_s < yielding_s) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(sleep_between_looks);
  }
  return waited_s;
}

}  // namespace hcp
