#include "tests/harness/pmpi_counter.hpp"

#include <mpi.h>

#include <mutex>

#include "tests/harness/sent_buffers.hpp"

namespace hcp {
namespace {

std::mutex mutex;
MpiTrafficSeen seen;

int world_rank_of(int rank, MPI_Comm comm) {
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Group world = MPI_GROUP_NULL;
  PMPI_Comm_group(comm, &group);
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  int world_rank = MPI_UNDEFINED;
  PMPI_Group_translate_ranks(group, 1, &rank, world, &world_rank);
  PMPI_Group_free(&group);
  PMPI_Group_free(&world);
  return world_rank;
}

void watch(const char* call, const void* buffer, int count, MPI_Datatype datatype) {
  if (watch_sent_buffer != nullptr) {
    watch_sent_buffer(call, buffer, count, datatype);
  }
}

void count_send(int count, MPI_Datatype datatype, int destination, MPI_Comm comm) {
  MPI_Count datatype_bytes = 0;
  PMPI_Type_size_x(datatype, &datatype_bytes);
  const int world_rank = world_rank_of(destination, comm);
  const std::lock_guard lock{mutex};
  MpiTraffic& traffic = seen.sent[world_rank];
  traffic.bytes += static_cast<std::int64_t>(datatype_bytes) * count;
  ++traffic.messages;
}

}  // namespace

MpiTrafficSeen mpi_traffic_seen() {
  const std::lock_guard lock{mutex};
  return seen;
}

void reset_mpi_traffic() {
  const std::lock_guard lock{mutex};
  seen = {};
}

void count_other_call(const char* name) {
  const std::lock_guard lock{mutex};
  ++seen.other_calls[name];
}

}  // namespace hcp

int MPI_Send(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
  hcp::watch("MPI_Send", buf, count, datatype);
  hcp::count_send(count, datatype, dest, comm);
  return PMPI_Send(buf, count, datatype, dest, tag, comm);
}

int MPI_Isend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
              MPI_Request* request) {
  hcp::watch("MPI_Isend", buf, count, datatype);
  hcp::count_send(count, datatype, dest, comm);
  return PMPI_Isend(buf, count, datatype, dest, tag, comm, request);
}
