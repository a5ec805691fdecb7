/// The main of every test program that runs under mpirun.
#include <gtest/gtest.h>

#include "tests/harness/rank_failures.hpp"
#include "topology/mpi_environment.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const hcp::MpiEnvironment mpi{argc, argv};
  hcp::report_failures_of_all_ranks();
  return RUN_ALL_TESTS();
}
