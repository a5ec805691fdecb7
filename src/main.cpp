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
#include "src/job/build_info.hpp"
#include "src/job/command_line.hpp"
#include "src/job/give_up.hpp"
#include "src/job/run_job.hpp"
#include "topology/mpi_environment.hpp"

namespace {

constexpr int exit_bad_input = 2;

using Arguments = std::vector<std::string>;

/// In one piece, because several ranks may write at the same time.
[[noreturn]] void abort_with(const hcp::MpiEnvironment& mpi, const std::string& message) {
  std::cerr << "hcp: world rank " + std::to_string(mpi.world_rank()) + ": " + message + "\n" << std::flush;
  hcp::abort_all_ranks(hcp::exit_status_error);
}

/// Bad input is found on all ranks alike, so all of them leave by themselves and one of them says why. Any
/// other error may be one rank's own, and the others may wait for it: the job ends at once. Only a timeout is
/// an error of several ranks, and each of them says what it waits for.
int run_on_all_ranks(hcp::MpiEnvironment& mpi, const Arguments& arguments) {
  try {
    return hcp::run_job(hcp::parse_job_config(arguments), mpi);
  } catch (const std::invalid_argument& error) {
    if (mpi.world_rank() == 0) {
      std::cerr << "hcp: " << error.what() << std::endl;
    }
    return exit_bad_input;
  } catch (const hcp::TransportTimeout& error) {
    hcp::give_up(error.what());
  } catch (const std::bad_alloc&) {
    abort_with(mpi, "out of memory; hcp plan with the same options tells what a rank needs");
  } catch (const std::exception& error) {
    abort_with(mpi, error.what());
  }
}

int plan(const Arguments& arguments) {
  return hcp::print_plan(hcp::parse_job_config(arguments), std::cout);
}

int print_help() {
  std::cout << hcp::help_text();
  return 0;
}

int print_version() {
  for (const auto& [name, value] : hcp::build_info()) {
    std::cout << name << ": " << value << "\n";
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments(argv + 1, argv + argc);
  try {
    switch (hcp::parse_command(arguments)) {
      case hcp::Command::run: {
        hcp::MpiEnvironment mpi{argc, argv};
        return run_on_all_ranks(mpi, arguments);
      }
      case hcp::Command::plan:
        return plan(arguments);
      case hcp::Command::help:
        return print_help();
      case hcp::Command::version:
        return print_version();
    }
  } catch (const std::invalid_argument& error) {
    std::cerr << "hcp: " << error.what() << "\n";
    return exit_bad_input;
  } catch (const std::exception& error) {
    std::cerr << "hcp: " << error.what() << "\n";
  }
  return hcp::exit_status_error;
}
