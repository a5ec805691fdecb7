#include "src/job/judgement.hpp"

#include <iostream>

#include "src/job/guards.hpp"
#include "src/job/verify_cell.hpp"
#include "topology/mpi_collectives.hpp"

namespace hcp {

ResultRow judge(const Measurement& measurement, const JobConfig& config, const JobPlan& plan,
                const Input& input, const HierarchicalCommunicators& communicators, CellRun& cell,
                const RankFacts& facts, Watchdog& watchdog) {
  watchdog.enter("the summary of the measurement");
  ResultRow result{.cell = 0};
  summarise(measurement, config, cell, plan, communicators, result);
  const std::vector<std::string> broken =
      broken_guards(measurement, config, cell, plan, communicators, facts.peak_flops);
  for (const std::string& guard : broken) {
    std::cerr << "hcp: guard: " + guard + "\n" << std::flush;
  }
  const auto all_broken =
      all_reduce(communicators.world(), Reduction::sum, static_cast<std::int64_t>(broken.size()));

  const auto progress = [&](int layer) {
    watchdog.enter("the verification of layer " + std::to_string(layer));
  };
  // After a stop the batch system may kill soon: nothing more is computed.
  const Verified verified =
      measurement.stopped ? Verified{} : verify_cell(config, plan, input, communicators, cell, progress);
  watchdog.enter("the end of the job");
  if (communicators.grid_rank() == 0 && !verified.where.empty()) {
    std::cerr << "hcp: verification: " << verified.where << std::endl;
  }

  const bool failed = all_broken > 0 || !verified.passed;
  result.error = verified.error;
  result.tolerance = verified.tolerance;
  result.verification = verified.mode;
  result.verdict = failed ? "FAIL" : verified.mode == "off" ? "UNVERIFIED" : "PASS";
  result.state = failed ? CellState::failed : CellState::done;
  result.reason = FixedString<256>::truncated(all_broken > 0 ? "a guard was broken" : verified.where);
  return result;
}

}  // namespace hcp
