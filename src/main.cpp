/// The program: `hcp run` on all ranks; `hcp plan`, `--help` and `--version` without MPI.
///
///   mpirun -n 4 hcp run inputs/quickstart.cfg
///   hcp plan inputs/quickstart.cfg --context-parallel-size 16 --simulate-ranks-per-node 4
#include <exception>
#include <iostream>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "src/comm/transport.hpp"
#include "src/job/agreement.hpp"
#include "src/job/build_info.hpp"
#include "src/job/command_line.hpp"
#include "src/job/exit_status.hpp"
#include "src/job/give_up.hpp"
#include "src/job/run_job.hpp"
#include "topology/mpi_environment.hpp"

namespace {

using hcp::ExitStatus;
using Arguments = std::vector<std::string>;

/// In one piece, because several ranks may write at the same time.
[[noreturn]] void abort_with(const hcp::MpiEnvironment& mpi, const std::string& message) {
  std::cerr << "hcp: world rank " + std::to_string(mpi.world_rank()) + ": " + message + "\n" << std::flush;
  hcp::abort_all_ranks(static_cast<int>(hcp::ExitStatus::error));
}

/// Of an InputError every rank knows, so all of them leave by themselves and one of them says why. Any other
/// error may be one rank's own, and the others may wait for it: the job ends at once. Only a timeout is an
/// error of several ranks, and each of them says what it waits for.
ExitStatus run_on_all_ranks(const hcp::MpiEnvironment& mpi, const Arguments& arguments) {
  try {
    const auto everyone = hcp::MpiCommunicator::duplicate(MPI_COMM_WORLD);
    // Agreed upon, because a deck may be missing on one host alone.
    const hcp::JobConfig config = hcp::agree_on(everyone, [&] { return hcp::parse_job_config(arguments); });
    return hcp::run_job(config, everyone);
  } catch (const hcp::InputError& error) {
    if (mpi.world_rank() == 0) {
      std::cerr << "hcp: " << error.what() << std::endl;
    }
    return ExitStatus::input;
  } catch (const hcp::TransportTimeout& error) {
    hcp::give_up(error.what());
  } catch (const std::bad_alloc&) {
    abort_with(mpi, "out of memory; hcp plan with the same options tells what a rank needs");
  } catch (const std::exception& error) {
    abort_with(mpi, error.what());
  }
}

void print_version() {
  for (const auto& [name, value] : hcp::build_info()) {
    std::cout << name << ": " << value << "\n";
  }
}

ExitStatus execute(int argc, char** argv) {
  const Arguments arguments(argv + 1, argv + argc);
  switch (hcp::parse_command(arguments)) {
    case hcp::Command::run: {
      const hcp::MpiEnvironment mpi{argc, argv};
      return run_on_all_ranks(mpi, arguments);
    }
    case hcp::Command::plan:
      hcp::print_plan(hcp::parse_job_config(arguments), std::cout);
      break;
    case hcp::Command::help:
      std::cout << hcp::help_text();
      break;
    case hcp::Command::version:
      print_version();
      break;
  }
  return ExitStatus::success;
}

}  // namespace

int main(int argc, char** argv) {
  ExitStatus status = ExitStatus::error;
  try {
    status = execute(argc, argv);
  } catch (const std::invalid_argument& error) {  // without MPI: run_on_all_ranks lets nothing pass
    std::cerr << "hcp: " << error.what() << "\n";
    status = ExitStatus::input;
  } catch (const std::exception& error) {
    std::cerr << "hcp: " << error.what() << "\n";
  }
  return static_cast<int>(status);
}
