/// From what ranks did to the rows of the trace file. All calls but the constructor are collective; rank 0
/// writes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/job/cell_run.hpp"
#include "src/trace/trace_file.hpp"
#include "topology/hierarchical_communicators.hpp"

namespace hcp {

class RunRecord {
 public:
  /// @param start_s  of rank 0's clock: the zero of all times
  /// @param file     on rank 0
  RunRecord(const HierarchicalCommunicators& communicators, const JobPlan& plan, double start_s,
            double clock_offset_s, std::optional<TraceFile> file);

  void write_ranks(const RankRow& mine);
  void rewrite_ranks(const RankRow& mine);
  void write_cell(const CellRow& cell, const PlacementRow& mine);
  /// What was done and which memory changed since the last call.
  void write_iteration(int cell, int iteration, PhaseLog& log, MemoryLedger& memory);
  /// The ledger of one iteration.
  void write_bytes(int cell, const TrafficLedger& planned, const TrafficLedger& counted);
  void write_result(const ResultRow& row);

  /// Why the file is incomplete; empty while all is well. Rank 0 only.
  [[nodiscard]] const std::string& failure() const { return failure_; }

 private:
  template <typename Row>
  void write(const std::vector<Row>& mine);
  template <typename Action>
  void attempt(const Action& action);

  const HierarchicalCommunicators& communicators_;
  const JobPlan& plan_;
  double zero_s_;  ///< of this rank's clock
  std::optional<TraceFile> file_;
  std::string failure_;
};

}  // namespace hcp
