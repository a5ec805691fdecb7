/// The one clock of the program, and what measures phases with it wherever they run.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace hcp {

/// Seconds of a monotonic clock whose zero is the same for all processes of one host.
[[nodiscard]] double now_s();

/// When phases began and ended in the order in which a kernel works, which may be long after the host asked
/// for it. Phases do not nest.
class PhaseClock {
 public:
  struct Interval {
    double begin_s = 0.0;  ///< as now_s()
    double end_s = 0.0;
  };

  virtual ~PhaseClock() = default;
  /// A phase begins after all that the kernel was asked for so far. The host does not wait. On a device that
  /// has nothing to do, it begins at once, and what the host prepares for the phase's first launch is part of
  /// it.
  /// @param name  what a profiler shows
  /// @return its number, counted from 0 since the last read()
  virtual std::size_t begin(const char* name) = 0;
  /// It ends with what the kernel was asked for since.
  virtual void end() = 0;
  /// The host waits until the kernel has come to the end of a phase.
  virtual void wait(std::size_t phase) = 0;
  /// All phases since the last read, by number. The host waits until the kernel has done its work.
  [[nodiscard]] virtual std::vector<Interval> read() = 0;
};

/// For kernels that are done when they return.
[[nodiscard]] std::unique_ptr<PhaseClock> make_host_phase_clock();

}  // namespace hcp
