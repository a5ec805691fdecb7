// Puts the software GPU under a whole program that knows nothing of it: the PTX is there before main(), and
// the program fails whose kernels or calls left findings.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/software_gpu/software_gpu.hpp"

namespace {

constexpr int exit_status_of_findings = 9;

class ProgramGuard {
 public:
  ProgramGuard() {
    const char* chosen = std::getenv("HCP_SOFTWARE_GPU_ARCHITECTURE");
    hcp::software_gpu::load_built_ptx(chosen == nullptr ? "compute_90" : chosen);
  }
  ProgramGuard(const ProgramGuard&) = delete;
  ProgramGuard& operator=(const ProgramGuard&) = delete;
  ~ProgramGuard() {
    bool clean = true;
    const auto report = [&clean](const std::string& finding) {
      std::fprintf(stderr, "software GPU: %s\n", finding.c_str());
      clean = false;
    };
    std::size_t launches = 0;
    for (const hcp::software_gpu::Launch& launch : hcp::software_gpu::take_launches()) {
      ++launches;
      for (const hcp::ptx::Finding& finding : launch.report.findings) {
        report(hcp::ptx::to_string(finding));
      }
    }
    for (const std::string& misuse : hcp::software_gpu::take_misuses()) {
      report(misuse);
    }
    for (const std::string& object : hcp::software_gpu::live_objects()) {
      report("never destroyed: " + object);
    }
    std::fprintf(stderr, "software GPU: %zu launches, no hardware is used\n", launches);
    if (!clean) {
      std::fflush(nullptr);
      _exit(exit_status_of_findings);
    }
  }
};

const ProgramGuard guard;

}  // namespace
