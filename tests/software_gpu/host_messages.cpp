// MPI's messages as accesses of the host to pinned memory: a host that sends what a copy has not brought yet,
// or receives where one still reads, is found in every schedule. In the PMPI profiling layer; a program that
// has wrappers of its own keeps them.

#include <mpi.h>

#include <cstddef>

#include "tests/harness/sent_buffers.hpp"
#include "tests/software_gpu/operation.hpp"

namespace {

using hcp::software_gpu::AccessMode;

void touch(const char* call, const void* buffer, int count, MPI_Datatype datatype, AccessMode mode) {
  int bytes = 0;
  PMPI_Type_size(datatype, &bytes);
  hcp::software_gpu::host_access(call, buffer,
                                 static_cast<std::size_t>(bytes) * static_cast<std::size_t>(count), mode);
}

}  // namespace

void hcp::watch_sent_buffer(const char* call, const void* buffer, int count, MPI_Datatype datatype) {
  touch(call, buffer, count, datatype, AccessMode::read);
}

extern "C" {

[[gnu::weak]] int MPI_Send(const void* buffer, int count, MPI_Datatype datatype, int to, int tag,
                           MPI_Comm comm) {
  hcp::watch_sent_buffer("MPI_Send", buffer, count, datatype);
  return PMPI_Send(buffer, count, datatype, to, tag, comm);
}

[[gnu::weak]] int MPI_Isend(const void* buffer, int count, MPI_Datatype datatype, int to, int tag,
                            MPI_Comm comm, MPI_Request* request) {
  hcp::watch_sent_buffer("MPI_Isend", buffer, count, datatype);
  return PMPI_Isend(buffer, count, datatype, to, tag, comm, request);
}

[[gnu::weak]] int MPI_Recv(void* buffer, int count, MPI_Datatype datatype, int from, int tag, MPI_Comm comm,
                           MPI_Status* status) {
  touch("MPI_Recv", buffer, count, datatype, AccessMode::write);
  return PMPI_Recv(buffer, count, datatype, from, tag, comm, status);
}

[[gnu::weak]] int MPI_Irecv(void* buffer, int count, MPI_Datatype datatype, int from, int tag, MPI_Comm comm,
                            MPI_Request* request) {
  touch("MPI_Irecv", buffer, count, datatype, AccessMode::write);
  return PMPI_Irecv(buffer, count, datatype, from, tag, comm, request);
}

}  // extern "C"
