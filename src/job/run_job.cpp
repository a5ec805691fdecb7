#include "src/job/run_job.hpp"

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
#include "src/job/transports.hpp"
#include "src/job/watchdog.hpp"

namespace hcp {
namespace {

/// The transports' own deadlines come first: they know the peer. It may take them a second to end what is
/// under way (nccl_communicator.cpp).
constexpr double watchdog_grace_s = 2.0;
static_assert(watchdog_grace_s < seconds_to_listen);

ExitStatus status_of(const ResultRow& result, const RunRecord& record, bool stopped) {
  if (result.state == CellState::failed) {
    return ExitStatus::failed;
  }
  if (!record.failure().empty()) {
    return ExitStatus::error;
  }
  return stopped ? ExitStatus::stopped : ExitStatus::success;
}

}  // namespace

ExitStatus run_job(JobConfig config, const MpiCommunicator& everyone) {
  return run_job(std::move(config), everyone, [](const MpiCommunicator& communicator, double timeout_s) {
    return make_mpi_transport(communicator, timeout_s);
  });
}

ExitStatus run_job(JobConfig config, const MpiCommunicator& everyone,
                   const TransportFactory& make_host_transport) {
  const std::string me = "world rank " + std::to_string(everyone.rank());
  Watchdog watchdog{me, config.timeout + watchdog_grace_s, give_up};
  watch_for_stop_signals();
  const std::string trace_path = config.trace.value_or(default_trace_path());
  agree(everyone, [&] { check_request(config, everyone, trace_path); });
  const Input input = agree_on(everyone, [&] { return open_input(config); });
  set_shape(config, input.shape);

  watchdog.enter("finding nodes and threads");
  const NodeLayout layout = find_nodes(config, everyone);
  const RankFacts facts = rank_facts(config, layout, everyone);
  watchdog.enter("planning");
  const GridSizes sizes = grid_sizes(config, everyone.size());
  set_resolved(config, sizes, facts);
  const auto plan =
      agree_on(everyone, [&] { return std::make_unique<const JobPlan>(config, input.shape, layout, sizes); });
  watchdog.enter("starting the back end");
  auto back_end = agree_on(everyone, [&] { return make_back_end(config, facts.threads, facts.device); });
  watchdog.enter("creating communicators");
  HierarchicalCommunicators communicators{everyone, layout, plan->grid()};
  const Transports transports =
      make_transports(config, facts.transport, back_end, everyone, make_host_transport);
  CellRun cell{
      config, *plan, communicators, std::move(back_end),
      [&](const MpiCommunicator& communicator, double timeout_s) {
        watchdog.enter("creating a communicator of " + std::to_string(communicator.size()) + " ranks");
        return transports.make(communicator, timeout_s);
      }};
  load_input(input, *plan, communicators, cell,
             [&](int layer) { watchdog.enter("the input of layer " + std::to_string(layer)); });

  watchdog.enter("creating the trace");
  RunRecord record{config, *plan, communicators, cell, facts, transports, trace_path, 0};
  const RunFacts header =
      run_facts(config, *plan, communicators, cell, facts, transports, record, trace_path);
  const bool is_root = communicators.grid_rank() == 0;
  if (is_root) {
    print_header(std::cout, config, *plan, header);
  }

  const Measurement measurement = measure(config, cell, communicators, record, watchdog);
  cell.to_host();
  const ResultRow result = judge(measurement, config, *plan, input, communicators, cell, facts, watchdog);

  const std::vector<std::string> max_logits = max_logit_lines(config, *plan, communicators, cell);

  record.write_bytes(cell.planned(), cell.counted_per_iteration(measurement.executed));
  record.finish(measurement.stopped ? std::nullopt
                                    : std::optional{result});  // a row means that the cell is finished
  if (is_root) {
    print_end(std::cout, record.cell(), result, max_logits, measurement.stopped, trace_path,
              record.failure());
  }
  return status_of(result, record, measurement.stopped);
}

}  // namespace hcp
