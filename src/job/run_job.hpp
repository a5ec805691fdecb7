/// The two jobs of the program.
#pragma once

#include <iosfwd>

#include "src/job/cell_run.hpp"
#include "src/job/job_config.hpp"
#include "topology/mpi_environment.hpp"

namespace hcp {

/// The whole job on all ranks: one cell, measured, verified, traced and printed. Collective.
/// @return the exit status: 0 pass or unverified, 1 verification or guard failed,
///         3 the trace could not be written,
///         4 stopped early by a signal: the iteration was finished, its events are flushed, and the cell
///         counts as unfinished (not verified, no row in /results), so that a requeued job repeats it
/// @throws std::invalid_argument on every rank alike, before any communicator of a CP group exists
[[nodiscard]] int run_job(JobConfig config, const MpiEnvironment& mpi);

/// The same with other transports, for tests.
[[nodiscard]] int run_job(JobConfig config, const MpiEnvironment& mpi,
                          const TransportFactory& make_transport);

/// What the job would move and hold, without MPI.
/// @return the exit status
[[nodiscard]] int print_plan(JobConfig config, std::ostream& out);

}  // namespace hcp
