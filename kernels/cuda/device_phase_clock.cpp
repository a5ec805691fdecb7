#include "kernels/cuda/device_phase_clock.hpp"

#include <nvtx3/nvToolsExt.h>

#include <utility>
#include <vector>

namespace hcp::cuda {
namespace {

class DevicePhaseClock final : public PhaseClock {
 public:
  explicit DevicePhaseClock(std::shared_ptr<Stream> stream) : stream_{std::move(stream)} { set(); }

  std::size_t begin(const char* name) override {
    nvtxRangePushA(name);
    mark();
    return marks_ / 2;  // of begin and end, before this phase's own end
  }

  void end() override {
    mark();
    nvtxRangePop();
  }

  void wait(std::size_t phase) override { events_.at(2 * phase + 1).synchronise(); }

  [[nodiscard]] std::vector<Interval> read() override {
    stream_->synchronise();
    std::vector<Interval> intervals(marks_ / 2);
    for (std::size_t i = 0; i < intervals.size(); ++i) {
      intervals[i] = {.begin_s = time_of(2 * i), .end_s = time_of(2 * i + 1)};
    }
    marks_ = 0;
    set();
    return intervals;
  }

 private:
  /// Events are made once and recorded again after each read.
  void mark() {
    if (marks_ == events_.size()) {
      events_.emplace_back(Event::Kind::time);
    }
    events_[marks_++].record(*stream_);
  }

  [[nodiscard]] double time_of(std::size_t mark) const {
    return zero_s_ + seconds_between(zero_, events_[mark]);
  }

  /// So the two clocks are never apart by more than they drift in one step, and the runtime's single
  /// precision counts microseconds.
  void set() {
    const double before = now_s();
    zero_.record(*stream_);
    zero_.synchronise();
    zero_s_ = (before + now_s()) / 2;
  }

  std::shared_ptr<Stream> stream_;
  Event zero_{Event::Kind::time};
  double zero_s_ = 0.0;
  std::vector<Event> events_;  ///< begin and end of a phase in turn
  std::size_t marks_ = 0;      ///< since the last read
};

}  // namespace

std::unique_ptr<PhaseClock> make_device_phase_clock(std::shared_ptr<Stream> stream) {
  return std::make_unique<DevicePhaseClock>(std::move(stream));
}

}  // namespace hcp::cuda
