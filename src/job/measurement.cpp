#include "src/job/measurement.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>

#include "kernels/stopwatch.hpp"
#include "topology/mpi_collectives.hpp"

namespace hcp {
namespace {

volatile std::sig_atomic_t stop_asked = 0;

void ask_to_stop(int /*signal*/) {
  stop_asked = 1;
}

double waits_in(const PhaseLog& log) {
  double sum = 0.0;
  for (const Phase& phase : log) {
    if (phase.kind == PhaseKind::wait) {
      sum += phase.end_s - phase.begin_s;
    }
  }
  return sum;
}

void show_progress(int iteration, int iterations) {
  if (isatty(STDERR_FILENO) != 0) {
    std::fprintf(stderr, "\riteration %d of %d%s", iteration, iterations,
                 iteration == iterations ? "\n" : "");
  }
}

/// Value at a share of the sorted list, the nearest rank.
double quantile(const std::vector<double>& sorted, double share) {
  const auto last = static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<std::size_t>(share * last + 0.5)];
}

double median(const std::vector<double>& sorted) {
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : 0.5 * (sorted[middle - 1] + sorted[middle]);
}

}  // namespace

void watch_for_stop_signals() {
  std::signal(SIGUSR1, ask_to_stop);
  std::signal(SIGTERM, ask_to_stop);
}

bool stop_was_asked() {
  return stop_asked != 0;
}

Measurement measure(const JobConfig& config, CellRun& cell, const HierarchicalCommunicators& communicators,
                    RunRecord& record, Watchdog& watchdog) {
  Measurement measurement;
  cell.reset_counts();
  for (int iteration = -config.warmup; iteration < config.iterations && !measurement.stopped; ++iteration) {
    const PhaseObserver watch = [&](const Phase& phase) { watchdog.enter(iteration, phase); };
    if (config.pass == PassSelection::backward) {
      cell.forward(watch);
    }
    watchdog.enter("the barrier before iteration " + std::to_string(iteration));
    barrier(communicators.world());
    cell.log().clear();  // of a forward pass that is not timed
    const double begin = now_s();
    if (config.pass != PassSelection::backward) {
      cell.forward(watch);
    }
    if (config.pass != PassSelection::forward) {
      cell.backward(watch);
    }
    const double seconds = now_s() - begin;
    ++measurement.executed;

    watchdog.enter("the end of iteration " + std::to_string(iteration));
    std::array<double, 2> agreed{seconds, stop_was_asked() ? 1.0 : 0.0};
    all_reduce(communicators.world(), Reduction::max, agreed);
    measurement.stopped = agreed[1] > 0.0;
    if (iteration < 0) {
      continue;
    }
    measurement.slowest_s.push_back(agreed[0]);
    measurement.elapsed_s += seconds;
    measurement.waiting_s += waits_in(cell.log());
    watchdog.enter("the trace of iteration " + std::to_string(iteration));
    record.write_iteration(iteration, cell.log(), cell.memory());
    if (communicators.grid_rank() == 0) {
      show_progress(iteration + 1, config.iterations);
    }
  }
  return measurement;
}

void summarise(const Measurement& measurement, const JobConfig& config, CellRun& cell, const JobPlan& plan,
               const HierarchicalCommunicators& communicators, ResultRow& result) {
  const MpiCommunicator& world = communicators.world();
  std::vector<double> sorted = measurement.slowest_s;
  std::sort(sorted.begin(), sorted.end());
  const double flops = all_reduce(world, Reduction::sum, cell.flops());
  if (!sorted.empty()) {
    result.time_min = sorted.front();
    result.time_median = median(sorted);
    result.time_p95 = quantile(sorted, 0.95);
    result.time_max = sorted.back();
    if (!config.comm_only) {
      result.tflops_per_rank = flops / world.size() / result.time_median * 1e-12;
    }
    const double exposed = measurement.elapsed_s > 0 ? measurement.waiting_s / measurement.elapsed_s : 0.0;
    result.exposed_fraction = all_reduce(world, Reduction::sum, exposed) / world.size();
  }
  std::array<std::int64_t, 2> bytes{0, 0};
  if (measurement.executed > 0) {
    for (const auto& [key, traffic] : cell.counted()) {
      const int peer = plan.grid_rank_of(communicators.coordinates(), key.peer_cp_rank);
      if (includes(config.pass, key.pass)) {
        bytes[plan.across_nodes(communicators.grid_rank(), peer) ? 1 : 0] +=
            traffic.bytes / measurement.executed;
      }
    }
  }
  all_reduce(world, Reduction::sum, bytes);
  result.bytes_inside = bytes[0];
  result.bytes_across = bytes[1];
  result.peak_memory_min = all_reduce(world, Reduction::min, cell.memory().peak_total());
  result.peak_memory_max = all_reduce(world, Reduction::max, cell.memory().peak_total());
  result.imbalance = imbalance_of(cell, communicators);
}

double imbalance_of(const CellRun& cell, const HierarchicalCommunicators& communicators) {
  const MpiCommunicator& world = communicators.world();
  const auto area = static_cast<double>(cell.area());
  const double total = all_reduce(world, Reduction::sum, area);
  return total > 0 ? all_reduce(world, Reduction::max, area) * world.size() / total : 1.0;
}

}  // namespace hcp
