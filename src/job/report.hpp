/// What a run prints: # header lines, a row per cell with fixed columns, and a last line for machines.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "src/job/job_config.hpp"
#include "src/job/job_plan.hpp"
#include "src/job/run_record.hpp"
#include "src/job/setup.hpp"
#include "src/trace/trace_rows.hpp"

namespace hcp {

/// What the header says that is only known at run time.
struct RunFacts {
  std::string back_end;            ///< "cpu (no device answers: ...)"
  std::string kernel;              ///< "cpu (avx512)"
  int threads = 1;                 ///< per rank
  double peak_flops = 0.0;         ///< as RankFacts::peak_flops
  double flops = 0.0;              ///< of all ranks in one iteration
  double imbalance = 1.0;          ///< visible area of the busiest rank over the mean
  std::string transport;           ///< as Transports::text
  std::string overlap;             ///< as Transports::overlap
  std::string trace;               ///< file
  std::string communicators;       ///< those of this rank with their sizes
  std::vector<std::string> ranks;  ///< one line each
};

/// Collective over the world.
[[nodiscard]] RunFacts run_facts(const JobConfig& config, const JobPlan& plan,
                                 const HierarchicalCommunicators& communicators, const CellRun& cell,
                                 const RankFacts& rank, const Transports& transports, const RunRecord& record,
                                 const std::string& trace);

/// The # lines, down to the names of the columns.
void print_header(std::ostream& out, const JobConfig& config, const JobPlan& plan, const RunFacts& facts);

/// Largest scaled score of each query head of the model, of all rows; one line per layer, none unless the
/// user wants them. Collective over the world.
[[nodiscard]] std::vector<std::string> max_logit_lines(const JobConfig& config, const JobPlan& plan,
                                                       const HierarchicalCommunicators& communicators,
                                                       const CellRun& cell);

/// The row of the cell, what else there is to say, where the trace is, and the verdict as the last line.
/// @param remarks  become # lines
/// @param stopped  by a signal, so that the cell is unfinished
/// @param trace_failure  why the trace is incomplete; empty when it is not
void print_end(std::ostream& out, const CellRow& cell, const ResultRow& result,
               const std::vector<std::string>& remarks, bool stopped, const std::string& trace,
               const std::string& trace_failure);

}  // namespace hcp
