#include "src/job/run_record.hpp"

#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iostream>
#include <limits>
#include <set>

#include "kernels/stopwatch.hpp"
#include "src/job/agreement.hpp"
#include "src/job/run_rows.hpp"
#include "topology/clock_offset.hpp"
#include "topology/mpi_collectives.hpp"

namespace hcp {
namespace {

/// Resident set of this process [B].
std::int64_t resident_bytes() {
  std::ifstream status{"/proc/self/statm"};
  std::int64_t pages = 0;
  std::int64_t resident = 0;
  status >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace

RunRecord::RunRecord(const JobConfig& config, const JobPlan& plan,
                     const HierarchicalCommunicators& communicators, const CellRun& run,
                     const RankFacts& facts, const Transports& transports, const std::string& path, int cell)
    : communicators_{communicators},
      plan_{plan},
      passes_{config.pass},
      cell_{cell_row(config, plan, cell)},
      rank_{rank_row(plan, communicators, facts)},
      placement_{placement_row(plan, communicators, run, cell)} {
  const bool is_root = communicators.grid_rank() == 0;
  cell_.flops = all_reduce(communicators.world(), Reduction::sum, run.flops());
  cell_.peak_flops = facts.peak_flops;
  agree(communicators.world(), [&] {
    if (is_root) {
      file_ = create_trace(config, transports, path);
    }
  });
  const ClockOffset clock = measure_clock_offset(communicators.world(), now_s);
  rank_.clock_offset_start = clock.offset_s;
  rank_.clock_uncertainty = clock.uncertainty_s;
  const double no_start = std::numeric_limits<double>::lowest();
  zero_s_ = all_reduce(communicators.world(), Reduction::max, is_root ? now_s() : no_start) + clock.offset_s;
  write(std::vector{rank_});
  write(std::vector{placement_});
  attempt([&](TraceFile& file) {
    file.append({&cell_, 1});
    file.flush();
  });
}

// A full disk must not take the measurement with it: the numbers are printed all the same, and the exit
// status tells.
template <typename Action>
void RunRecord::attempt(const Action& action) {
  if (!file_) {
    return;
  }
  try {
    action(*file_);
  } catch (const TraceError& error) {
    failure_ = error.what();
    std::cerr << "hcp: " << failure_ << "; the run goes on without a trace" << std::endl;
    file_.reset();
  }
}

template <typename Row>
void RunRecord::write(const std::vector<Row>& mine) {
  constexpr std::size_t most_bytes = std::size_t{16} << 20;
  constexpr std::size_t piece_bytes = most_bytes / sizeof(Row) * sizeof(Row);
  std::vector<Row> rows;
  visit_by_rank(communicators_.world(), std::as_bytes(std::span{mine}), piece_bytes,
                [&](int /*rank*/, std::span<const std::byte> piece) {
                  rows.resize(piece.size() / sizeof(Row));
                  std::memcpy(static_cast<void*>(rows.data()), piece.data(), piece.size());
                  attempt([&](TraceFile& file) { file.append(rows); });
                });
}

void RunRecord::write_iteration(int iteration, PhaseLog& log, MemoryLedger& memory) {
  std::vector<EventRow> events;
  events.reserve(log.size());
  for (const Phase& phase : log) {
    events.push_back(
        {.t_begin = phase.begin_s - zero_s_,
         .t_end = phase.end_s - zero_s_,
         .bytes = phase.bytes,
         .cell = cell_.cell,
         .iteration = iteration,
         .rank = communicators_.grid_rank(),
         .layer = phase.layer,
         .level = phase.level,
         .step = phase.step,
         .peer = phase.peer < 0 ? -1 : plan_.grid_rank_of(communicators_.coordinates(), phase.peer),
         .pass = name_of(phase.pass),
         .kind = name_of(phase.kind)});
  }
  log.clear();
  std::vector<MemoryRow> changes;
  for (const MemoryLedger::Change& change : memory.take_changes()) {
    changes.push_back({.t = change.time_s - zero_s_,
                       .live_bytes = change.live_bytes,
                       .cell = cell_.cell,
                       .rank = communicators_.grid_rank(),
                       .category = name_of(change.category)});
  }
  changes.push_back({.t = now_s() - zero_s_,
                     .live_bytes = resident_bytes(),
                     .cell = cell_.cell,
                     .rank = communicators_.grid_rank(),
                     .category = "rss"});
  write(events);
  write(changes);
  attempt([](TraceFile& file) { file.flush(); });
}

void RunRecord::write_bytes(const TrafficLedger& planned, const TrafficLedger& counted) {
  std::set<TrafficKey> keys;
  for (const TrafficLedger* ledger : {&planned, &counted}) {
    for (const auto& [key, traffic] : *ledger) {
      if (includes(passes_, key.pass)) {
        keys.insert(key);
      }
    }
  }
  const auto of = [](const TrafficLedger& ledger, const TrafficKey& key) {
    const auto found = ledger.find(key);
    return found == ledger.end() ? Traffic{} : found->second;
  };
  std::vector<BytesRow> rows;
  for (const TrafficKey& key : keys) {
    const int peer = plan_.grid_rank_of(communicators_.coordinates(), key.peer_cp_rank);
    rows.push_back({.cell = cell_.cell,
                    .rank = communicators_.grid_rank(),
                    .peer = peer,
                    .across_nodes = plan_.across_nodes(communicators_.grid_rank(), peer) ? 1 : 0,
                    .level = key.level,
                    .pass = name_of(key.pass),
                    .tensor = name_of(key.payload),
                    .bytes_counted = of(counted, key).bytes,
                    .messages_counted = of(counted, key).messages,
                    .bytes_planned = of(planned, key).bytes,
                    .messages_planned = of(planned, key).messages});
  }
  write(rows);
}

void RunRecord::finish(const std::optional<ResultRow>& result) {
  rank_.clock_offset_end = measure_clock_offset(communicators_.world(), now_s).offset_s;
  std::vector<RankRow> ranks(static_cast<std::size_t>(communicators_.world().size()));
  visit_by_rank(communicators_.world(), std::as_bytes(std::span{&rank_, 1}), sizeof(RankRow),
                [&](int rank, std::span<const std::byte> row) {
                  std::memcpy(static_cast<void*>(&ranks[static_cast<std::size_t>(rank)]), row.data(),
                              row.size());
                });
  attempt([&](TraceFile& file) {
    file.rewrite(ranks);
    if (result) {
      file.append({&*result, 1});
    }
    file.flush();
  });
  failure_ = broadcast(communicators_.world(), failure_, 0);
}

}  // namespace hcp
