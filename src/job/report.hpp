/// What a run prints: # header lines, a row per cell with fixed columns, and a last line for machines.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "src/job/job_config.hpp"
#include "src/job/job_plan.hpp"
#include "src/trace/trace_rows.hpp"

namespace hcp {

/// What the header says that is only known at run time.
struct RunFacts {
  std::string kernel;              ///< "cpu (avx512)"
  int threads = 1;                 ///< per rank
  double peak_flops = 0.0;         ///< of the threads of one rank, measured
  double flops = 0.0;              ///< of all ranks in one iteration
  double imbalance = 1.0;          ///< visible area of the busiest rank over the mean
  bool helper_thread = false;      ///< transfers progress during computation
  std::string trace;               ///< file, empty without
  std::vector<std::string> ranks;  ///< one line each
};

void print_header(std::ostream& out, const JobConfig& config, const JobPlan& plan, const RunFacts& facts);

/// The names of the columns, as a # line.
void print_columns(std::ostream& out);
void print_row(std::ostream& out, const CellRow& cell, const ResultRow& result);

}  // namespace hcp
