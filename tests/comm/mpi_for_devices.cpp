#include "tests/comm/mpi_for_devices.hpp"

#include <cuda_runtime_api.h>
#include <mpi.h>

#include <mpi-ext.h>  // after mpi.h, without which it does not compile

#include <cstddef>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "kernels/cuda/check.hpp"
#include "kernels/cuda/stream.hpp"

namespace hcp {
namespace {

/// A message that is open, by way of memory of the host.
struct Detour {
  void* device = nullptr;
  std::vector<std::byte> host;
  bool receives = false;
};

std::map<MPI_Request, Detour>& detours() {
  static std::map<MPI_Request, Detour> open;
  return open;
}

/// And waits for it.
void copy(void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind) {
  cuda::Stream stream;
  cuda::check(cudaMemcpyAsync(target, source, bytes, kind, stream.get()), "cudaMemcpyAsync");
  stream.synchronise();
}

/// The device's memory was MPI's until now.
void end(Detour& detour) {
  if (detour.receives) {
    if (mpi_for_devices().spoils) detour.host.back() ^= std::byte{1};
    copy(detour.device, detour.host.data(), detour.host.size(), cudaMemcpyHostToDevice);
    return;
  }
  std::vector<std::byte> now(detour.host.size());
  copy(now.data(), detour.device, now.size(), cudaMemcpyDeviceToHost);
  if (now != detour.host) throw std::logic_error{"what is sent was changed before it had left"};
}

}  // namespace

MpiForDevices& mpi_for_devices() {
  static MpiForDevices of_this_rank;
  return of_this_rank;
}

}  // namespace hcp

int MPIX_Query_cuda_support(void) {
  return hcp::mpi_for_devices().claims ? 1 : 0;
}

int MPI_Isend(const void* buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
              MPI_Request* request) {
  ++hcp::mpi_for_devices().messages;
  hcp::Detour detour{.device = const_cast<void*>(buffer),
                     .host = std::vector<std::byte>(static_cast<std::size_t>(count))};
  hcp::copy(detour.host.data(), buffer, detour.host.size(), cudaMemcpyDeviceToHost);
  const int code = PMPI_Isend(detour.host.data(), count, type, peer, tag, comm, request);
  hcp::detours()[*request] = std::move(detour);
  return code;
}

int MPI_Irecv(void* buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
              MPI_Request* request) {
  hcp::Detour detour{
      .device = buffer, .host = std::vector<std::byte>(static_cast<std::size_t>(count)), .receives = true};
  const int code = PMPI_Irecv(detour.host.data(), count, type, peer, tag, comm, request);
  hcp::detours()[*request] = std::move(detour);
  return code;
}

int MPI_Test(MPI_Request* request, int* finished, MPI_Status* status) {
  const auto detour = hcp::detours().find(*request);
  const int code = PMPI_Test(request, finished, status);
  if (*finished != 0 && detour != hcp::detours().end()) {
    hcp::end(detour->second);
    hcp::detours().erase(detour);
  }
  return code;
}
