/// The ranks between which the double of NCCL carries messages, for as long as MPI lives. Its sources take
/// the place of MPI_Init_thread and MPI_Finalize.
#pragma once

#include <mpi.h>

namespace hcp::software_gpu {

/// All ranks of the job; nothing of the program's own travels on it. MPI_COMM_NULL before MPI is initialised.
[[nodiscard]] MPI_Comm nccl_world();

/// Collective over all ranks, with no launch under way. What is wrong with the order of the launches since
/// the last check (launch_order.hpp) is a finding of rank 0. MPI_Finalize does this first.
void check_launch_order();

}  // namespace hcp::software_gpu
