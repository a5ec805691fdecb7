/// The timed iterations of a cell, and what they say.
#pragma once

#include <vector>

#include "src/job/cell_run.hpp"
#include "src/job/run_record.hpp"
#include "src/job/watchdog.hpp"

namespace hcp {

/// Set by SIGUSR1 and SIGTERM: the ranks agree after each iteration, and stop together.
void watch_for_stop_signals();
[[nodiscard]] bool stop_was_asked();

struct Measurement {
  std::vector<double> slowest_s;  ///< of each timed iteration: the slowest rank, from a barrier on
  double waiting_s = 0.0;         ///< this rank's time in waits over all timed iterations
  double elapsed_s = 0.0;         ///< this rank's time over all timed iterations
  int executed = 0;               ///< iterations whose messages were counted, warm-ups included
  bool stopped = false;           ///< by a signal, before all iterations were done
};

/// Collective over the world: warm-ups, then iterations. Events and memory of the timed ones go to the record
/// between them.
[[nodiscard]] Measurement measure(const JobConfig& config, CellRun& cell,
                                  const HierarchicalCommunicators& communicators, RunRecord& record,
                                  Watchdog& watchdog);

/// Fills in times, rates, bytes, exposed communication and peak memory. Collective over the world.
void summarise(const Measurement& measurement, const JobConfig& config, CellRun& cell, const JobPlan& plan,
               const HierarchicalCommunicators& communicators, ResultRow& result);

/// Visible area (times heads) of the busiest rank over the mean of all. Collective over the world.
[[nodiscard]] double imbalance_of(const CellRun& cell, const HierarchicalCommunicators& communicators);

}  // namespace hcp
