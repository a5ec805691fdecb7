/// Writes a trace of two cells with known numbers, for the tests of the file and of the analysis.
///
///     write_trace FILE finish     closes the file as a job does
///     write_trace FILE kill       flushes cell 0, adds rows of cell 1 without a flush and kills itself
///     write_trace FILE hold       flushes cell 0 and waits for the end of its standard input, then finishes
///     write_trace FILE fill       appends events until the disk is full (status 3, message on stderr)
#include <csignal>
#include <iostream>
#include <string>

#include "src/trace/trace_file.hpp"

namespace {

constexpr int ranks = 4;
constexpr int iterations = 2;
constexpr double millisecond = 1e-3;

hcp::CellRow cell_row(int cell) {
  return {.cell = cell,
          .tokens = 4096,
          .scheme = "p2p+a2a",
          .sizes = "2,2",
          .mask = "causal",
          .dtype = "bf16",
          .pass = "fwdbwd",
          .nodes = "2 (simulated)",
          .options = hcp::to_json({{"seq-length", "4096"}, {"qkv", "a \"quoted\" \\ näme\n"}})};
}

/// Appends events of one rank and pass from `begin` on: pack, then two steps of compute with a transfer under
/// the first, then copy. Rank r waits 2 + r/2 ms. Returns when the pass ends.
double append_pass(std::vector<hcp::EventRow>& events, hcp::EventRow event, double begin, double compute_ms) {
  const auto add = [&](hcp::FixedString<8> kind, int step, double duration_ms) {
    event.kind = kind;
    event.step = step;
    event.t_begin = begin;
    event.t_end = begin += duration_ms * millisecond;
    events.push_back(event);
  };
  event.level = -1;
  add(hcp::EventKind::pack, -1, 1.0);
  event.level = 0;
  event.peer = event.rank ^ 1;
  event.bytes = 1000;
  add(hcp::EventKind::post, 1, 0.1);
  add(hcp::EventKind::compute, 0, compute_ms);
  add(hcp::EventKind::wait, 1, 2.0 + 0.5 * event.rank);
  event.level = 1;
  event.peer = event.rank ^ 2;
  add(hcp::EventKind::post, 2, 0.1);
  add(hcp::EventKind::compute, 1, compute_ms);
  add(hcp::EventKind::wait, 2, 1.0);
  event.level = event.peer = -1;
  add(hcp::EventKind::copy, -1, 0.5);
  return begin;
}

std::vector<hcp::EventRow> events_of(int cell) {
  std::vector<hcp::EventRow> events;
  for (int rank = 0; rank < ranks; ++rank) {
    double t = cell;
    for (int iteration = 0; iteration < iterations; ++iteration) {
      hcp::EventRow event{.cell = cell, .iteration = iteration, .rank = rank};
      event.pass = hcp::PassName::forward;
      t = append_pass(events, event, t, 10.0);
      event.pass = hcp::PassName::backward;
      t = append_pass(events, event, t, 20.0);
    }
  }
  return events;
}

std::vector<hcp::RankRow> rank_rows(double clock_offset_end) {
  std::vector<hcp::RankRow> rows;
  for (int rank = 0; rank < ranks; ++rank) {
    rows.push_back({.rank = rank,
                    .node = rank / 2,
                    .local_rank = rank % 2,
                    .world_rank = ranks - 1 - rank,
                    .host = "host" + std::to_string(rank / 2),
                    .binding = "0-3,8",
                    .clock_offset_start = 1e-6 * rank,
                    .clock_offset_end = clock_offset_end});
  }
  return rows;
}

void append_ranks_and_placement(hcp::TraceFile& trace) {
  trace.append(rank_rows(hcp::not_measured));
  std::vector<hcp::PlacementRow> placement;
  for (int rank = 0; rank < ranks; ++rank) {
    placement.push_back({.rank = rank,
                         .cp = rank,
                         .level_coordinates = std::to_string(rank % 2) + "," + std::to_string(rank / 2),
                         .tokens = 1024 + rank});
  }
  trace.append(placement);
}

void append_done_cell(hcp::TraceFile& trace) {
  trace.append(std::vector{cell_row(0)});
  append_ranks_and_placement(trace);
  trace.append(events_of(0));
  trace.append(std::vector<hcp::MemoryRow>{
      {.t = 0.25, .live_bytes = std::int64_t{1} << 33, .rank = 3, .category = "head_scatter"},
      {.t = 0.5, .live_bytes = 123, .rank = 3, .category = "rss"}});
  trace.append(std::vector<hcp::BytesRow>{{.rank = 1,
                                           .peer = 2,
                                           .across_nodes = 1,
                                           .level = 1,
                                           .pass = hcp::PassName::backward,
                                           .tensor = "dkv",
                                           .bytes_counted = std::int64_t{3} << 32,
                                           .messages_counted = 4,
                                           .bytes_planned = std::int64_t{3} << 32,
                                           .messages_planned = 4}});
  trace.append(std::vector<hcp::ResultRow>{{.state = hcp::CellState::done,
                                            .time_min = 0.0761,
                                            .time_median = 0.0772,
                                            .time_p95 = 0.0783,
                                            .time_max = 0.0794,
                                            .tflops_per_rank = 0.1234,
                                            .exposed_fraction = 0.097,
                                            .bytes_inside = 5'000'000,
                                            .bytes_across = 7'250'000,
                                            .imbalance = 1.05,
                                            .peak_memory_min = 10'500'000,
                                            .peak_memory_max = 11'250'000,
                                            .error = 1.5e-3,
                                            .tolerance = 1e-2,
                                            .verdict = "PASS",
                                            .verification = "full"}});
  trace.flush();
}

void finish(hcp::TraceFile& trace) {
  trace.append(std::vector{cell_row(1)});
  trace.append(std::vector<hcp::ResultRow>{
      {.cell = 1, .state = hcp::CellState::skipped, .reason = "cp 8 does not divide 4 ranks"}});
  trace.rewrite(rank_rows(2e-6));
  trace.flush();
}

void fill(hcp::TraceFile& trace) {
  for (;;) {
    trace.append(events_of(1));
    trace.flush();
  }
}

void write(const std::string& path, const std::string& ending) {
  hcp::TraceFile trace = hcp::TraceFile::create(path, {{"git_revision", "0123abc"},
                                                       {"command_line", "hcp run 'a b'"},
                                                       {"environment", std::string(100'000, 'x')}});
  append_done_cell(trace);
  if (ending == "kill") {
    trace.append(events_of(1));
    std::raise(SIGKILL);
  } else if (ending == "hold") {
    std::cout << "flushed" << std::endl;
    std::cin.get();
  } else if (ending == "fill") {
    fill(trace);
  }
  finish(trace);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    write(argv[1], argv[2]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 3;
  }
  return 0;
}
