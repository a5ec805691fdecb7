#include "tests/software_gpu/findings.hpp"

#include <cstdio>
#include <string>
#include <vector>

#include "tests/software_gpu/software_gpu.hpp"

namespace hcp::software_gpu {

void NoFindings::OnTestEnd(const testing::TestInfo& /*test*/) {
  finish_streams();
  for (const Launch& launch : take_launches()) {
    for (const ptx::Finding& finding : launch.report.findings) {
      ADD_FAILURE() << to_string(finding);
    }
  }
  for (const std::string& misuse : take_misuses()) {
    ADD_FAILURE() << misuse;
  }
}

std::size_t print_what_is_left() {
  const std::vector<std::string> misuses = take_misuses();
  for (const std::string& misuse : misuses) {
    std::printf("%s\n", misuse.c_str());
  }
  const std::vector<std::string> objects = live_objects();
  for (const std::string& object : objects) {
    std::printf("never destroyed: %s\n", object.c_str());
  }
  return misuses.size() + objects.size();
}

}  // namespace hcp::software_gpu
