#include "src/job/run_record.hpp"

#include <cstring>
#include <fstream>
#include <iostream>
#include <set>

#include "kernels/stopwatch.hpp"
#include "topology/mpi_collectives.hpp"

namespace hcp {
namespace {

/// Resident set of this process [B].
std::int64_t resident_bytes() {
  std::ifstream status{"/proc/self/statm"};
  std::int64_t pages = 0;
  std::int64_t resident = 0;
  status >> pages >> resident;
  constexpr std::int64_t page_bytes = 4096;
  return resident * page_bytes;
}

template <typename Row>
std::span<const std::byte> as_bytes_of(const std::vector<Row>& rows) {
  return std::as_bytes(std::span{rows});
}

}  // namespace

RunRecord::RunRecord(const HierarchicalCommunicators& communicators, const JobPlan& plan, double start_s,
                     double clock_offset_s, std::optional<TraceFile> file)
    : communicators_{communicators}, plan_{plan}, zero_s_{start_s + clock_offset_s}, file_{std::move(file)} {}

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
  for (const std::vector<std::byte>& bytes : gather(communicators_.world(), as_bytes_of(mine), 0)) {
    std::vector<Row> rows(bytes.size() / sizeof(Row));
    std::memcpy(static_cast<void*>(rows.data()), bytes.data(), bytes.size());
    attempt([&](TraceFile& file) { file.append(rows); });
  }
}

void RunRecord::write_ranks(const RankRow& mine) {
  write(std::vector{mine});
}

void RunRecord::rewrite_ranks(const RankRow& mine) {
  std::vector<RankRow> rows;
  for (const std::vector<std::byte>& bytes :
       gather(communicators_.world(), as_bytes_of(std::vector{mine}), 0)) {
    std::memcpy(static_cast<void*>(&rows.emplace_back()), bytes.data(), sizeof(RankRow));
  }
  attempt([&](TraceFile& file) {
    file.rewrite(rows);
    file.flush();
  });
}

void RunRecord::write_cell(const CellRow& cell, const PlacementRow& mine) {
  write(std::vector{mine});
  attempt([&](TraceFile& file) {
    file.append({&cell, 1});
    file.flush();
  });
}

void RunRecord::write_iteration(int cell, int iteration, PhaseLog& log, MemoryLedger& memory) {
  std::vector<EventRow> events;
  events.reserve(log.size());
  for (const Phase& phase : log) {
    events.push_back(
        {.t_begin = phase.begin_s - zero_s_,
         .t_end = phase.end_s - zero_s_,
         .bytes = phase.bytes,
         .cell = cell,
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
                       .cell = cell,
                       .rank = communicators_.grid_rank(),
                       .category = name_of(change.category)});
  }
  changes.push_back({.t = now_s() - zero_s_,
                     .live_bytes = resident_bytes(),
                     .cell = cell,
                     .rank = communicators_.grid_rank(),
                     .category = "rss"});
  write(events);
  write(changes);
  attempt([](TraceFile& file) { file.flush(); });
}

void RunRecord::write_bytes(int cell, const TrafficLedger& planned, const TrafficLedger& counted) {
  std::set<TrafficKey> keys;
  for (const TrafficLedger* ledger : {&planned, &counted}) {
    for (const auto& [key, traffic] : *ledger) {
      keys.insert(key);
    }
  }
  const auto of = [](const TrafficLedger& ledger, const TrafficKey& key) {
    const auto found = ledger.find(key);
    return found == ledger.end() ? Traffic{} : found->second;
  };
  std::vector<BytesRow> rows;
  for (const TrafficKey& key : keys) {
    const int peer = plan_.grid_rank_of(communicators_.coordinates(), key.peer_cp_rank);
    rows.push_back({.cell = cell,
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

void RunRecord::write_result(const ResultRow& row) {
  attempt([&](TraceFile& file) {
    file.append({&row, 1});
    file.flush();
  });
}

}  // namespace hcp
