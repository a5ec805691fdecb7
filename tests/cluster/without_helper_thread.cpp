/// `hcp run OPTIONS` whose transports have no helper thread: messages move inside wait() only.
#include <string>
#include <vector>

#include "src/comm/mpi_transport.hpp"
#include "src/job/command_line.hpp"
#include "src/job/run_job.hpp"
#include "topology/mpi_environment.hpp"

int main(int argc, char** argv) {
  const hcp::MpiEnvironment mpi{argc, argv};
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const auto everyone = hcp::MpiCommunicator::duplicate(MPI_COMM_WORLD);
  return static_cast<int>(hcp::run_job(hcp::parse_job_config(arguments), everyone,
                                       [](const hcp::MpiCommunicator& communicator, double timeout_s) {
                                         return hcp::make_mpi_transport(communicator, timeout_s,
                                                                        hcp::Progress::none);
                                       }));
}
