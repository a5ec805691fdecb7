// Between the program and MPI (the PMPI profiling layer): MPI reads what is sent and writes what is received
// from the call on until the program knows that it has finished, and the software GPU hears of it where that
// is pinned memory. For messages of plain bytes that are waited for by MPI_Test.

#include <mpi.h>

#include <cstddef>
#include <map>

#include "tests/software_gpu/operation.hpp"

namespace {

using hcp::software_gpu::AccessMode;

struct Buffer {
  const void* begin = nullptr;
  std::size_t bytes = 0;
  AccessMode mode = AccessMode::read;
};

std::map<MPI_Request, Buffer>& open_buffers() {
  static std::map<MPI_Request, Buffer> of_requests;
  return of_requests;
}

template <typename Start>
int watched(const char* call, const Buffer& buffer, MPI_Datatype type, MPI_Request* request, Start start) {
  if (type != MPI_BYTE) return start();
  hcp::software_gpu::host_access(call, buffer.begin, buffer.bytes, buffer.mode);
  const int code = start();
  open_buffers()[*request] = buffer;
  return code;
}

}  // namespace

int MPI_Isend(const void* buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
              MPI_Request* request) {
  return watched("MPI_Isend", {buffer, static_cast<std::size_t>(count), AccessMode::read}, type, request,
                 [&] { return PMPI_Isend(buffer, count, type, peer, tag, comm, request); });
}

int MPI_Irecv(void* buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
              MPI_Request* request) {
  return watched("MPI_Irecv", {buffer, static_cast<std::size_t>(count), AccessMode::write}, type, request,
                 [&] { return PMPI_Irecv(buffer, count, type, peer, tag, comm, request); });
}

int MPI_Test(MPI_Request* request, int* finished, MPI_Status* status) {
  const auto open = open_buffers().find(*request);
  const int code = PMPI_Test(request, finished, status);
  if (*finished != 0 && open != open_buffers().end()) {
    const auto& [buffer, bytes, mode] = open->second;
    hcp::software_gpu::host_access("MPI_Test of a message", buffer, bytes, mode);
    open_buffers().erase(open);
  }
  return code;
}
