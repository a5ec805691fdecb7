/// How MPI's lifetime ends: "finishes" returns from main in order, "throws" lets an exception pass a live
/// communicator on one rank while the other waits in a barrier.
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

}  // namespace

int main(int argc, char** argv) {
  const bool throws = argc == 2 && std::string_view{argv[1]} == "throws";
  {
    const hcp::MpiEnvironment mpi{argc, argv};
    try {
      if (throws) {
        throw_on_rank_1();
      }
      hcp::barrier(hcp::MpiCommunicator::duplicate(MPI_COMM_WORLD));
    } catch (const std::exception& error) {
      std::cerr << "rank 1 gives up: " << error.what() << std::endl;
      hcp::abort_all_ranks(3);
    }
    std::cout << (mpi.grants_multiple() == (mpi.thread_level_name() == "MPI_THREAD_MULTIPLE") ? "" : "wrong ")
              << "level " << mpi.thread_level_name() << std::endl;
  }
  int finalized = 0;
  MPI_Finalized(&finalized);
  std::cout << (finalized != 0 ? "finalized, MPI_THREAD_ level was read" : "not finalized") << std::endl;
}
