/// The two jobs of the program.
#pragma once

#include <iosfwd>

#include "src/job/cell_run.hpp"
#include "src/job/exit_status.hpp"
#include "src/job/job_config.hpp"
#include "topology/mpi_environment.hpp"

namespace hcp {

/// The whole job on all ranks: one cell, measured, verified, traced and printed. Collective over `everyone`.
/// @return stopped after a signal: the iteration was finished, its events are flushed, and the cell counts as
///         unfinished (not verified, no row in /results); error if the trace could not be written
/// @throws InputError on every rank if options, environment or input cannot be used. Any other exception,
///         std::invalid_argument too, may be one rank's own, and the other ranks may wait for it
[[nodiscard]] ExitStatus run_job(JobConfig config, const MpiCommunicator& everyone);

/// The same with other transports between the memories of hosts, for tests.
[[nodiscard]] ExitStatus run_job(JobConfig config, const MpiCommunicator& everyone,
                                 const TransportFactory& make_host_transport);

/// What the job would move and hold, without MPI.
/// @throws std::invalid_argument if options or input cannot be used
void print_plan(JobConfig config, std::ostream& out);

}  // namespace hcp
