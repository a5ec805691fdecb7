// main() of device tests on the software GPU.

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/software_gpu/findings.hpp"
#include "tests/software_gpu/software_gpu.hpp"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(
      new hcp::software_gpu::NoFindings);  // NOLINT: takes it
  const std::string configuration = hcp::software_gpu::configure_from_environment();
  std::printf("software GPU, %s: no hardware is used\n", configuration.c_str());
  const int failed = RUN_ALL_TESTS();
  return hcp::software_gpu::print_what_is_left() == 0 ? failed : 1;
}
