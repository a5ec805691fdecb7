#include "src/job/run_job.hpp"

#include <cstdlib>
#include <iostream>

#include "src/comm/mpi_transport.hpp"
#include "src/job/agreement.hpp"
#include "src/job/config_validation.hpp"
#include "src/job/give_up.hpp"
#include "src/job/judgement.hpp"
#include "src/job/measurement.hpp"
#include "src/job/report.hpp"
#include "src/job/run_record.hpp"
#include "src/job/setup.hpp"
#include "src/job/watchdog.hpp"

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
  const RankFacts facts = rank_facts(config, layout, everyone);
  CellRun cell{config, plan, communicators, make_kernel(config, facts.threads), make_transport};
  load_input(input, plan, communicators, cell);

  RunRecord record{config, plan, communicators, cell, facts, trace_path, 0};
  const RunFacts header = run_facts(config, plan, communicators, cell, facts, record, trace_path);
  const bool is_root = communicators.grid_rank() == 0;
  if (is_root) {
    print_header(std::cout, config, plan, header);
  }

  const Measurement measurement = measure(config, cell, communicators, record, watchdog);
  const ResultRow result = judge(measurement, config, plan, input, communicators, cell, facts, watchdog);

  record.write_bytes(cell.planned(), cell.counted_per_iteration(measurement.executed));
  record.finish(measurement.stopped ? std::nullopt
                                    : std::optional{result});  // a row means that the cell is finished
  if (is_root) {
    print_end(std::cout, record.cell(), result, measurement.stopped, trace_path, record.failure());
  }
  if (result.state == CellState::failed) {
    return status_failed;
  }
  if (!record.failure().empty()) {
    return exit_status_error;
  }
  return measurement.stopped ? status_stopped : EXIT_SUCCESS;
}

}  // namespace hcp
