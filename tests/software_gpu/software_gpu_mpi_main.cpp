// main() of tests of several ranks, each with a software GPU.

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/harness/rank_failures.hpp"
#include "tests/software_gpu/findings.hpp"
#include "tests/software_gpu/software_gpu.hpp"
#include "topology/mpi_environment.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  int failed = 0;
  {
    const hcp::MpiEnvironment mpi{argc, argv};
    hcp::report_failures_of_all_ranks();
    testing::UnitTest::GetInstance()->listeners().Append(
        new hcp::software_gpu::NoFindings);  // NOLINT: takes it
    const std::string configuration = hcp::software_gpu::configure_from_environment();
    if (mpi.world_rank() == 0) {
      std::printf("software GPU, %s: no hardware is used\n", configuration.c_str());
    }
    failed = RUN_ALL_TESTS();
  }  // MPI's end has a last look at NCCL's launches
  return hcp::software_gpu::print_what_is_left() == 0 ? failed : 1;
}
