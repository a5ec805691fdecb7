/// The two jobs of the program.
#pragma once

#include <iosfwd>

#include "src/job/job_config.hpp"

namespace hcp {

class MpiEnvironment;

/// The whole job on all ranks. Collective.
/// @return the exit status
int run_job(const JobConfig& config, MpiEnvironment& mpi);

/// What the job would move and hold, without MPI.
/// @return the exit status
int print_plan(const JobConfig& config, std::ostream& out);

}  // namespace hcp
