#include "src/job/give_up.hpp"

#include <iostream>
#include <vector>

#include "src/comm/mpi_transport.hpp"
#include "src/job/exit_status.hpp"
#include "topology/mpi_environment.hpp"

namespace hcp {

void give_up(const std::string& message) {
  std::cerr << "hcp: " + message + "\n" << std::flush;
  if (mpi_allows_helper_thread()) {  // it may be the watchdog's thread that is here
    std::string silent;
    for (const int rank : silent_ranks(seconds_to_listen)) {
      silent += (silent.empty() ? "" : ", ") + std::to_string(rank);
    }
    if (!silent.empty()) {
      std::cerr << "hcp: the job waits for world rank " + silent +
                       ": stopped, dead, or busy in what it does\n"
                << std::flush;
    }
  }
  abort_all_ranks(static_cast<int>(ExitStatus::error));
}

}  // namespace hcp
