// Every micro kernel on the device and on the interpreter.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "tests/ptx/conformance/agreement.hpp"
#include "tests/ptx/conformance/micro_runs.hpp"
#include "tests/ptx/conformance/operand_values.hpp"
#include "tests/ptx/conformance/record.hpp"

namespace hcp::ptx {
namespace {

constexpr int threads = 16 * warp_threads;

/// The table goes to the file HCP_CONFORMANCE_TABLE, operands and results of the device to
/// HCP_CONFORMANCE_RECORD.
TEST(PtxConformance, TheInterpreterAgreesWithTheDevice) {
  std::vector<Agreement> agreements;
  std::vector<RecordedRun> runs;
  for (const MicroKernel& kernel : micro_kernels()) {
    const std::vector<std::uint32_t> operands = operands_of(kernel, threads);
    const std::vector<std::uint32_t> results = run_on_device(kernel, operands);
    const Agreement agreement = agreement_of(kernel, operands, run_on_interpreter(kernel, operands), results);
    EXPECT_EQ(agreement.beyond_tolerance, 0)
        << kernel.name << ", " << kernel.instruction << ": " << agreement.first_beyond;
    agreements.push_back(agreement);
    runs.push_back({kernel.name, threads, operands, results});
  }
  std::cout << table_of(agreements);
  if (const char* const file = std::getenv("HCP_CONFORMANCE_TABLE")) {
    std::ofstream{file} << table_of(agreements);
  }
  if (const char* const file = std::getenv("HCP_CONFORMANCE_RECORD")) {
    write_record(file, runs);
  }
}

}  // namespace
}  // namespace hcp::ptx
