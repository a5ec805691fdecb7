// main() of tests of several ranks that share the first device of the machine.

#include <gtest/gtest.h>

#include <cstdio>

#include "kernels/cuda/devices.hpp"
#include "tests/harness/rank_failures.hpp"
#include "topology/mpi_environment.hpp"

int main(int argc, char** argv) {
  constexpr int skipped = 77;
  testing::InitGoogleTest(&argc, argv);
  const hcp::MpiEnvironment mpi{argc, argv};
  const hcp::DeviceSearch devices = hcp::find_devices();
  if (devices.names.empty()) {
    if (mpi.world_rank() == 0) std::printf("skipped, no device answers: %s\n", devices.reason.c_str());
    return skipped;
  }
  if (mpi.world_rank() == 0) {
    std::printf("device: %s, of %d ranks\n", devices.names.front().c_str(), mpi.world_size());
  }
  hcp::report_failures_of_all_ranks();
  return RUN_ALL_TESTS();
}
