#include "topology/clock_offset.hpp"

#include <limits>

namespace hcp {
namespace {

constexpr int round_trips = 8;
constexpr int tag = 1;

void answer(const MpiCommunicator& comm, int asking, double (*now)()) {
  for (int i = 0; i < round_trips; ++i) {
    double time = 0.0;
    check_mpi(MPI_Recv(&time, 1, MPI_DOUBLE, asking, tag, comm.get(), MPI_STATUS_IGNORE), "MPI_Recv");
    time = now();
    check_mpi(MPI_Send(&time, 1, MPI_DOUBLE, asking, tag, comm.get()), "MPI_Send");
  }
}

ClockOffset ask(const MpiCommunicator& comm, int answering, double (*now)()) {
  ClockOffset best{0.0, std::numeric_limits<double>::infinity()};
  for (int i = 0; i < round_trips; ++i) {
    const double begin = now();
    double theirs = begin;
    check_mpi(MPI_Send(&theirs, 1, MPI_DOUBLE, answering, tag, comm.get()), "MPI_Send");
    check_mpi(MPI_Recv(&theirs, 1, MPI_DOUBLE, answering, tag, comm.get(), MPI_STATUS_IGNORE), "MPI_Recv");
    const double half = (now() - begin) / 2;
    if (half < best.uncertainty_s) {
      best = {begin + half - theirs, half};
    }
  }
  return best;
}

}  // namespace

ClockOffset measure_clock_offset(const MpiCommunicator& comm, double (*now)()) {
  if (comm.rank() != 0) {
    check_mpi(MPI_Barrier(comm.get()), "MPI_Barrier");
    return ask(comm, 0, now);
  }
  check_mpi(MPI_Barrier(comm.get()), "MPI_Barrier");
  for (int rank = 1; rank < comm.size(); ++rank) {
    answer(comm, rank, now);
  }
  return {};
}

}  // namespace hcp
