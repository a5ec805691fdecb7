// main() of device tests on the software GPU.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/software_gpu/findings.hpp"
#include "tests/software_gpu/software_gpu.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(
      new hcp::software_gpu::NoFindings);  // NOLINT: takes it
  const char* chosen = std::getenv("HCP_SOFTWARE_GPU_ARCHITECTURE");
  const std::string architecture = chosen == nullptr ? "compute_90" : chosen;
  hcp::software_gpu::load_built_ptx(architecture);
  std::printf("software GPU, %s: no hardware is used\n", architecture.c_str());
  const int failed = RUN_ALL_TESTS();
  return hcp::software_gpu::print_what_is_left() == 0 ? failed : 1;
}
