#include "kernels/stopwatch.hpp"

#include <chrono>
#include <utility>

namespace hcp {
namespace {

class HostPhaseClock final : public PhaseClock {
 public:
  std::size_t begin(const char* /*name*/) override {
    intervals_.push_back({.begin_s = now_s()});
    return intervals_.size() - 1;
  }
  void end() override { intervals_.back().end_s = now_s(); }
  void wait(std::size_t /*phase*/) override {}
  [[nodiscard]] std::vector<Interval> read() override { return std::exchange(intervals_, {}); }

 private:
  std::vector<Interval> intervals_;
};

}  // namespace

double now_s() {
  // CLOCK_MONOTONIC on Linux: counted from the start of the host.
  return std::chrono::duration<double>{std::chrono::steady_clock::now().time_since_epoch()}.count();
}

std::unique_ptr<PhaseClock> make_host_phase_clock() {
  return std::make_unique<HostPhaseClock>();
}

}  // namespace hcp
