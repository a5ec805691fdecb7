// What only the software GPU can show: that the comparison itself is right, and that no instruction is left
// out.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/ptx/conformance/agreement.hpp"
#include "tests/ptx/conformance/micro_runs.hpp"
#include "tests/ptx/conformance/operand_values.hpp"
#include "tests/ptx/conformance/record.hpp"
#include "tests/software_gpu/software_gpu.hpp"

namespace hcp::ptx {
namespace {

class LoadMicroKernels final : public testing::Environment {
  void SetUp() override { software_gpu::load_ptx(micro_kernels_ptx()); }
};
const testing::Environment* const loads = testing::AddGlobalTestEnvironment(new LoadMicroKernels);

/// The first word of every instruction, without a predicate before it.
std::set<std::string> instructions_of(const std::filesystem::path& ptx) {
  std::set<std::string> instructions;
  std::ifstream file{ptx};
  for (std::string line; std::getline(file, line);) {
    std::istringstream words{line};
    std::string word;
    while (words >> word && (word.starts_with('@') || word == "{")) {
    }
    if (!word.empty() && std::islower(static_cast<unsigned char>(word.front())) != 0) {
      instructions.insert(word.substr(0, word.find(';')));
    }
  }
  return instructions;
}

TEST(PtxConformance, EveryInstructionOfTheProductHasAMicroKernel) {
  std::set<std::string> covered{"bra", "bra.uni", "ret", "bar.sync", "cvta.to.global.u64"};
  for (const MicroKernel& kernel : micro_kernels()) {
    std::istringstream words{kernel.instruction};
    for (std::string word; words >> word;) {
      covered.insert(word);
    }
  }
  std::size_t seen = 0;
  for (const std::filesystem::path ptx : {HCP_CUDA_PTX_FILES}) {
    for (const std::string& instruction : instructions_of(ptx)) {
      const std::string opcode = instruction.substr(0, instruction.find('.'));
      const bool moves_data = opcode == "ld" || opcode == "st" || opcode == "mov";
      EXPECT_TRUE(moves_data || covered.contains(instruction)) << instruction << " in " << ptx;
      ++seen;
    }
  }
  EXPECT_GT(seen, covered.size());
}

TEST(PtxConformance, TheSoftwareGpuGivesTheSameBits) {
  constexpr int threads = 4 * warp_threads;
  for (const MicroKernel& kernel : micro_kernels()) {
    const std::vector<std::uint32_t> operands = operands_of(kernel, threads);
    EXPECT_EQ(run_on_device(kernel, operands), run_on_interpreter(kernel, operands)) << kernel.name;
  }
}

/// A micro kernel whose results can be told without a machine.
std::uint32_t sum_of(const std::vector<std::uint32_t>& operands, std::size_t thread) {
  return operands[2 * thread] + operands[2 * thread + 1];
}

TEST(PtxConformance, ResultsAreThoseOfTheInstructionAndOfTheThread) {
  const auto adds = [](const MicroKernel& kernel) { return kernel.name == "add_s32"; };
  const MicroKernel& kernel = *std::ranges::find_if(micro_kernels(), adds);
  const std::vector<std::uint32_t> operands = operands_of(kernel, 2 * warp_threads);
  const std::vector<std::uint32_t> results = run_on_device(kernel, operands);
  ASSERT_EQ(results.size(), 2U * warp_threads);
  for (std::size_t thread = 0; thread < results.size(); ++thread) {
    EXPECT_EQ(results[thread], sum_of(operands, thread));
  }
}

TEST(PtxConformance, DifferencesAreCounted) {
  MicroKernel kernel;
  kernel.operands = {Values::fp32};
  kernel.result = Values::fp32;
  kernel.tolerance = {.ulp = 2.0};
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto bits = [](float x) { return std::bit_cast<std::uint32_t>(x); };
  const std::vector<std::uint32_t> expected{bits(1.0F), bits(1.0F), bits(1.0F),
                                            bits(0.0F), bits(nan),  bits(nan)};
  const std::vector<std::uint32_t> results{bits(1.0F),  bits(1.0F) - 2,   bits(1.0F) + 3,
                                           bits(-0.0F), bits(nan) | 0x1U, bits(1.0F)};
  const Agreement agreement = agreement_of(kernel, expected, expected, results);
  EXPECT_EQ(agreement.results, 6);
  EXPECT_EQ(agreement.equal, 1);
  EXPECT_EQ(agreement.nan_payloads, 1);
  EXPECT_EQ(agreement.beyond_tolerance, 2);
  EXPECT_EQ(agreement.largest_ulp, std::numeric_limits<double>::infinity());
  EXPECT_THAT(agreement.first_beyond, testing::HasSubstr("got 3f800003"));
}

TEST(PtxConformance, ARecordIsReadAsItWasWritten) {
  const std::filesystem::path file = std::filesystem::path{testing::TempDir()} / "conformance.record";
  const std::vector<RecordedRun> runs{{"one", 2, {1, 0x0a0a0a0a, 3, 4}, {5, 6}}, {"two", 1, {7}, {8, 9, 10}}};
  write_record(file, runs);
  EXPECT_EQ(read_record(file), runs);
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  EXPECT_THROW(static_cast<void>(read_record(file)), std::runtime_error);
  std::ofstream{file} << "nothing of the kind\n";
  EXPECT_THROW(static_cast<void>(read_record(file)), std::runtime_error);
  std::filesystem::remove(file);
  EXPECT_THROW(static_cast<void>(read_record(file)), std::runtime_error);
}

}  // namespace
}  // namespace hcp::ptx
