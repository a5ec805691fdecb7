#include "tests/attention/case_checks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/harness/pmpi_counter.hpp"

namespace hcp {

double tolerance_of(DataType type) {
  switch (type) {
    case DataType::fp32:
      return 2e-6;
    case DataType::bf16:
      return 1e-2;
    case DataType::fp16:
      return 2e-3;
  }
  return 0.0;
}

double tolerance_of(const Problem& problem, const Setting& setting) {
  return std::max(tolerance_of(problem.type), tolerance_of(setting.gradient_wire));
}

CaseErrors check_case(const Problem& problem, const Setting& setting, const Answer& answer,
                      const MpiCommunicator& comm) {
  SCOPED_TRACE(problem.describe() + "; " + setting.describe());
  const LocalResult result =
      run_case(problem, setting, answer, comm, host_platform(setting), reset_mpi_traffic);
  const MpiTrafficSeen seen = mpi_traffic_seen();

  CaseErrors errors = errors_of(problem, answer, result);
  errors.include(errors_of(answer, head_terms(result, comm)));
  EXPECT_LE(errors.worst, tolerance_of(problem, setting)) << errors.where;

  const TrafficLedger planned = planned_ledger(result.plan);
  EXPECT_EQ(result.counted, planned);
  std::map<int, MpiTraffic> planned_to;
  for (const auto& [key, traffic] : planned) {
    MpiTraffic& to = planned_to[key.peer_cp_rank];
    to.bytes += traffic.bytes;
    to.messages += traffic.messages;
  }
  EXPECT_EQ(seen.sent, planned_to);
  EXPECT_THAT(seen.other_calls, testing::IsEmpty());

  const ExchangePlan* const plan = &result.plan;
  const MemoryPeaks peaks = planned_memory({&plan, 1}, PassSelection::both);
  EXPECT_EQ(result.peaks, peaks.by_category);
  EXPECT_EQ(result.peak_total, peaks.total);
  return errors;
}

}  // namespace hcp
