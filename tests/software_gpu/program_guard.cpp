// Puts the software GPU under a whole program that knows nothing of it: the PTX is there before main(), and
// the program fails whose kernels or calls left findings.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/software_gpu/planted_bugs.hpp"
#include "tests/software_gpu/software_gpu.hpp"

namespace {

constexpr int exit_status_of_findings = 9;

class ProgramGuard {
 public:
  ProgramGuard() : configuration_{hcp::software_gpu::configure_from_environment()} {}
  ProgramGuard(const ProgramGuard&) = delete;
  ProgramGuard& operator=(const ProgramGuard&) = delete;
  ~ProgramGuard() {
    hcp::software_gpu::finish_streams();
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
    if (std::getenv("HCP_SOFTWARE_GPU_BUG") != nullptr && !hcp::software_gpu::uproot()) {
      std::fprintf(stderr, "software GPU: no call had the bug\n");
    }
    std::fprintf(stderr, "software GPU: %zu launches, %s, no hardware is used\n", launches,
                 configuration_.c_str());
    if (!clean) {
      std::fflush(nullptr);
      _exit(exit_status_of_findings);
    }
  }

 private:
  std::string configuration_;
};

const ProgramGuard guard;

}  // namespace
