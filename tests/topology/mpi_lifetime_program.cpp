/// How MPI's lifetime ends. "finishes" returns from main in order; "throws" lets an exception pass a live
/// communicator on rank 1 while rank 0 waits in a barrier: exit status 3 instead of a hang.
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string_view>

#include "topology/mpi_collectives.hpp"

namespace {

void throw_on_rank_1() {
  const auto world = hcp::MpiCommunicator::duplicate(MPI_COMM_WORLD);
  if (world.rank() == 1) {
    throw std::runtime_error{"one rank alone"};
  }
  hcp::barrier(world);
}

bool is_finalized() {
  int finalized = 0;
  hcp::check_mpi(MPI_Finalized(&finalized), "MPI_Finalized");
  return finalized != 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool throws = argc == 2 && std::string_view{argv[1]} == "throws";
  bool level_is_named = false;
  {
    const hcp::MpiEnvironment mpi{argc, argv};
    level_is_named = mpi.grants_multiple() == (mpi.thread_level_name() == "MPI_THREAD_MULTIPLE");
    try {
      if (throws) {
        throw_on_rank_1();
      }
      hcp::barrier(hcp::MpiCommunicator::duplicate(MPI_COMM_WORLD));
    } catch (const std::exception& error) {
      std::cerr << "gives up: " << error.what() << std::endl;
      hcp::abort_all_ranks(3);
    }
  }
  return level_is_named && is_finalized() ? 0 : 1;
}
