// main() of device tests on the software GPU. A test fails that leaves findings.

#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "tests/software_gpu/software_gpu.hpp"

namespace {

class NoFindings : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo& /*test*/) override {
    hcp::software_gpu::finish_streams();
    for (const hcp::software_gpu::Launch& launch : hcp::software_gpu::take_launches()) {
      for (const hcp::ptx::Finding& finding : launch.report.findings) {
        ADD_FAILURE() << hcp::ptx::to_string(finding);
      }
    }
    for (const std::string& misuse : hcp::software_gpu::take_misuses()) {
      ADD_FAILURE() << misuse;
    }
  }
};

/// @return how many
std::size_t print_live_objects() {
  const std::vector<std::string> objects = hcp::software_gpu::live_objects();
  for (const std::string& object : objects) {
    std::printf("never destroyed: %s\n", object.c_str());
  }
  return objects.size();
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new NoFindings);  // NOLINT: takes it
  const std::string configuration = hcp::software_gpu::configure_from_environment();
  std::printf("software GPU, %s: no hardware is used\n", configuration.c_str());
  const int failed = RUN_ALL_TESTS();
  return print_live_objects() == 0 ? failed : 1;
}
