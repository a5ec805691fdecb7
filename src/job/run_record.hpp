/// The trace of a run: from what ranks did to rows of the file. Every call is collective over the world; rank
/// 0 writes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/job/cell_run.hpp"
#include "src/job/setup.hpp"
#include "src/trace/trace_file.hpp"
#include "topology/hierarchical_communicators.hpp"

namespace hcp {

class RunRecord {
 public:
  /// Creates the file and writes what is known before the run: ranks, and the cell with its placement.
  /// @param cell  number of the cell, from 0
  /// @throws InputError on every rank if the file exists or cannot be created there
  RunRecord(const JobConfig& config, const JobPlan& plan, const HierarchicalCommunicators& communicators,
            const CellRun& run, const RankFacts& facts, const Transports& transports, const std::string& path,
            int cell);

  [[nodiscard]] const CellRow& cell() const { return cell_; }
  [[nodiscard]] const RankRow& rank() const { return rank_; }
  [[nodiscard]] const PlacementRow& placement() const { return placement_; }

  /// What was done and which memory changed since the last call.
  void write_iteration(int iteration, PhaseLog& log, MemoryLedger& memory);
  /// The ledger of the timed passes of one iteration.
  void write_bytes(const TrafficLedger& planned, const TrafficLedger& counted);
  /// Clocks once more, and the result, unless the cell is unfinished.
  void finish(const std::optional<ResultRow>& result);

  /// Why the file is incomplete, the same on every rank after finish(); empty when all is well.
  [[nodiscard]] const std::string& failure() const { return failure_; }

 private:
  template <typename Row>
  void write(const std::vector<Row>& mine);
  template <typename Action>
  void attempt(const Action& action);

  const HierarchicalCommunicators& communicators_;
  const JobPlan& plan_;
  PassSelection passes_;
  CellRow cell_;
  RankRow rank_;
  PlacementRow placement_;
  double zero_s_ = 0.0;  ///< start of the job on this rank's clock
  std::optional<TraceFile> file_;
  std::string failure_;
};

}  // namespace hcp
