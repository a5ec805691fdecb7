/// Sends of other kinds than MPI_Send and MPI_Isend are counted by name and passed on; so is what must come
/// before one-sided and neighbourhood communication.
#include <mpi.h>

#include "tests/harness/pmpi_counter.hpp"

using hcp::count_other_call;

int MPI_Bsend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
  count_other_call("MPI_Bsend");
  return PMPI_Bsend(buf, count, datatype, dest, tag, comm);
}

int MPI_Ssend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
  count_other_call("MPI_Ssend");
  return PMPI_Ssend(buf, count, datatype, dest, tag, comm);
}

int MPI_Rsend(const void* ibuf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
  count_other_call("MPI_Rsend");
  return PMPI_Rsend(ibuf, count, datatype, dest, tag, comm);
}

int MPI_Ibsend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
               MPI_Request* request) {
  count_other_call("MPI_Ibsend");
  return PMPI_Ibsend(buf, count, datatype, dest, tag, comm, request);
}

int MPI_Issend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
               MPI_Request* request) {
  count_other_call("MPI_Issend");
  return PMPI_Issend(buf, count, datatype, dest, tag, comm, request);
}

int MPI_Irsend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
               MPI_Request* request) {
  count_other_call("MPI_Irsend");
  return PMPI_Irsend(buf, count, datatype, dest, tag, comm, request);
}

int MPI_Sendrecv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag,
                 void* recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm,
                 MPI_Status* status) {
  count_other_call("MPI_Sendrecv");
  return PMPI_Sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source,
                       recvtag, comm, status);
}

int MPI_Sendrecv_replace(void* buf, int count, MPI_Datatype datatype, int dest, int sendtag, int source,
                         int recvtag, MPI_Comm comm, MPI_Status* status) {
  count_other_call("MPI_Sendrecv_replace");
  return PMPI_Sendrecv_replace(buf, count, datatype, dest, sendtag, source, recvtag, comm, status);
}

int MPI_Start(MPI_Request* request) {
  count_other_call("MPI_Start");
  return PMPI_Start(request);
}

int MPI_Startall(int count, MPI_Request array_of_requests[]) {
  count_other_call("MPI_Startall");
  return PMPI_Startall(count, array_of_requests);
}

int MPI_Win_create(void* base, MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  count_other_call("MPI_Win_create");
  return PMPI_Win_create(base, size, disp_unit, info, comm, win);
}

int MPI_Win_allocate(MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr,
                     MPI_Win* win) {
  count_other_call("MPI_Win_allocate");
  return PMPI_Win_allocate(size, disp_unit, info, comm, baseptr, win);
}

int MPI_Win_allocate_shared(MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr,
                            MPI_Win* win) {
  count_other_call("MPI_Win_allocate_shared");
  return PMPI_Win_allocate_shared(size, disp_unit, info, comm, baseptr, win);
}

int MPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  count_other_call("MPI_Win_create_dynamic");
  return PMPI_Win_create_dynamic(info, comm, win);
}

int MPI_Cart_create(MPI_Comm old_comm, int ndims, const int dims[], const int periods[], int reorder,
                    MPI_Comm* comm_cart) {
  count_other_call("MPI_Cart_create");
  return PMPI_Cart_create(old_comm, ndims, dims, periods, reorder, comm_cart);
}

int MPI_Graph_create(MPI_Comm comm_old, int nnodes, const int index[], const int edges[], int reorder,
                     MPI_Comm* comm_graph) {
  count_other_call("MPI_Graph_create");
  return PMPI_Graph_create(comm_old, nnodes, index, edges, reorder, comm_graph);
}

int MPI_Dist_graph_create(MPI_Comm comm_old, int n, const int nodes[], const int degrees[],
                          const int targets[], const int weights[], MPI_Info info, int reorder,
                          MPI_Comm* newcomm) {
  count_other_call("MPI_Dist_graph_create");
  return PMPI_Dist_graph_create(comm_old, n, nodes, degrees, targets, weights, info, reorder, newcomm);
}

int MPI_Dist_graph_create_adjacent(MPI_Comm comm_old, int indegree, const int sources[],
                                   const int sourceweights[], int outdegree, const int destinations[],
                                   const int destweights[], MPI_Info info, int reorder,
                                   MPI_Comm* comm_dist_graph) {
  count_other_call("MPI_Dist_graph_create_adjacent");
  return PMPI_Dist_graph_create_adjacent(comm_old, indegree, sources, sourceweights, outdegree, destinations,
                                         destweights, info, reorder, comm_dist_graph);
}
