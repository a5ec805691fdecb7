/// The double of an MPI that takes pointers to the device, between the program and the library (the PMPI
/// profiling layer): MPI_Isend, MPI_Irecv and MPI_Test of this program's ranks take nothing else. What they
/// are given is read and written by copies that are ordered after what the host knows to be done.
#pragma once

namespace hcp {

struct MpiForDevices {
  bool claims = true;   ///< what MPIX_Query_cuda_support says
  bool spoils = false;  ///< the last byte of what arrives here
  int messages = 0;     ///< that were sent
};

/// Of this rank.
[[nodiscard]] MpiForDevices& mpi_for_devices();

}  // namespace hcp
