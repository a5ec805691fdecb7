#include "src/job/run_job.hpp"

#include <cstdlib>
#include <iostream>
#include <optional>

#include "kernels/cpu/cpu_isa.hpp"
#include "kernels/cpu/peak.hpp"
#include "kernels/stopwatch.hpp"
#include "src/comm/mpi_transport.hpp"
#include "src/job/agreement.hpp"
#include "src/job/config_validation.hpp"
#include "src/job/give_up.hpp"
#include "src/job/measurement.hpp"
#include "src/job/report.hpp"
#include "src/job/run_record.hpp"
#include "src/job/setup.hpp"
#include "src/job/verify_cell.hpp"
#include "src/job/watchdog.hpp"
#include "topology/clock_offset.hpp"
#include "topology/mpi_collectives.hpp"

namespace hcp {
namespace {

constexpr int status_failed = 1;
constexpr int status_stopped = 4;
/// The transports' own deadlines come first: they know the peer.
constexpr double watchdog_grace_s = 1.0;
static_assert(watchdog_grace_s < seconds_to_listen);

}  // namespace

int run_job(JobConfig config, const MpiEnvironment& mpi) {
  return run_job(std::move(config), mpi, [](const MpiCommunicator& communicator, double timeout_s) {
    return make_mpi_transport(communicator, timeout_s);
  });
}

int run_job(JobConfig config, const MpiEnvironment& /*mpi*/, const TransportFactory& make_transport) {
  const MpiCommunicator everyone = MpiCommunicator::duplicate(MPI_COMM_WORLD);
  validate(config, everyone.size());
  Watchdog watchdog{"world rank " + std::to_string(everyone.rank()), config.timeout + watchdog_grace_s,
                    give_up};
  watch_for_stop_signals();
  const std::string trace_path = config.trace.value_or(default_trace_path());

  Input input;
  agree(everyone, [&] {
    input = open_input(config);
    if (everyone.rank() == 0) {
      check_trace_path(trace_path);
    }
  });
  set_shape(config, input.shape);
  const NodeLayout layout = discover_node_layout(everyone, config.simulate_ranks_per_node.value_or(0));
  const JobPlan plan{config, input.shape, layout, grid_sizes(config, everyone.size())};
  HierarchicalCommunicators communicators{everyone, layout, plan.grid()};
  const bool is_root = communicators.grid_rank() == 0;

  const HostFacts facts = this_host();
  const int threads = threads_per_rank(config, facts, layout, everyone);
  CellRun cell{config, plan, communicators, make_kernel(config, threads), make_transport};
  agree(communicators.world(), [&] { load_input(input, plan, communicators, cell); });
  const double peak_flops = measured_peak_flops(config.dtype, threads);

  std::optional<TraceFile> file;
  agree(communicators.world(), [&] {
    if (is_root) {
      file = create_trace(config, trace_path);
    }
  });
  const ClockOffset clock = measure_clock_offset(communicators.world(), now_s);
  const double start_s = all_reduce(communicators.world(), Reduction::max, is_root ? now_s() : -1e300);
  RunRecord record{communicators, plan, start_s, clock.offset_s, std::move(file)};
  RankRow rank = rank_row(plan, communicators, facts, everyone.rank());
  rank.clock_offset_start = clock.offset_s;
  rank.clock_uncertainty = clock.uncertainty_s;
  record.write_ranks(rank);
  const CellRow row = cell_row(config, plan, 0);
  const PlacementRow placement = placement_row(plan, communicators, cell, 0);
  record.write_cell(row, placement);

  ResultRow result{.cell = 0};
  RunFacts run_facts{
      .kernel = config.attention_kernel == KernelChoice::reference
                    ? "reference (fp64)"
                    : "cpu (" + std::string{cpu_isa_name()} + ")",
      .threads = threads,
      .peak_flops = peak_flops,
      .flops = all_reduce(communicators.world(), Reduction::sum, cell.flops()),
      .imbalance = imbalance_of(cell, communicators),
      .helper_thread = mpi_allows_helper_thread(),
      .trace = trace_path,
      .ranks =
          all_gather(communicators.world(),
                     rank_line(rank, placement, layout.node_names.at(static_cast<std::size_t>(rank.node))))};
  if (is_root) {
    print_header(std::cout, config, plan, run_facts);
    print_columns(std::cout);
    std::cout.flush();
  }

  const Measurement measurement = measure(config, cell, communicators, record, watchdog, row.cell);
  watchdog.enter("the summary of the measurement");
  summarise(measurement, config, cell, plan, communicators, result);
  const std::vector<std::string> broken =
      broken_guards(measurement, config, cell, plan, communicators, peak_flops);
  for (const std::string& guard : broken) {
    std::cerr << "hcp: guard: " << guard << std::endl;
  }
  watchdog.enter("the verification");
  // After a stop the batch system may kill soon: nothing more is computed.
  const Verified verified =
      measurement.stopped ? Verified{} : verify_cell(config, plan, input, communicators, cell);
  watchdog.enter("the end of the job");
  if (is_root && !verified.where.empty()) {
    std::cerr << "hcp: verification: " << verified.where << std::endl;
  }
  const bool guards_hold =
      all_reduce(communicators.world(), Reduction::sum, static_cast<std::int64_t>(broken.size())) == 0;
  result.error = verified.error;
  result.tolerance = verified.tolerance;
  result.verification = verified.mode;
  const bool failed = !guards_hold || !verified.passed;
  result.verdict = failed ? "FAIL" : verified.mode == "off" ? "UNVERIFIED" : "PASS";
  result.state = failed ? CellState::failed : CellState::done;
  result.reason = FixedString<256>::truncated(!guards_hold      ? "a guard was broken"
                                              : verified.passed ? ""
                                                                : verified.where);

  record.write_bytes(row.cell, cell.planned(), cell.counted_per_iteration(measurement.executed));
  rank.clock_offset_end = measure_clock_offset(communicators.world(), now_s).offset_s;
  record.rewrite_ranks(rank);
  if (!measurement.stopped) {
    record.write_result(result);  // a row there means that the cell is finished
  }
  const bool traced =
      all_reduce(communicators.world(), Reduction::max, record.failure().empty() ? 0.0 : 1.0) == 0.0;
  if (is_root) {
    if (measurement.stopped) {
      std::cout << "# stopped by a signal after " << measurement.slowest_s.size() << " of "
                << config.iterations << " iterations, not verified; /results has no row of this cell\n";
    }
    print_row(std::cout, row, result);
    std::cout << "# trace: " << (traced ? trace_path : "incomplete, " + record.failure()) << "\n"
              << result.verdict.view() << std::endl;
  }
  if (failed) {
    return status_failed;
  }
  if (!traced) {
    return exit_status_error;
  }
  return measurement.stopped ? status_stopped : EXIT_SUCCESS;
}

}  // namespace hcp
