/// One launch of every kernel: no bank conflicts on tensor cores, and what it does is what the stored file
/// says. HCP_WRITE_KERNEL_COUNTERS=FILE writes the file anew.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/devices.hpp"
#include "tests/kernels/cuda/attention_checks.hpp"
#include "tests/kernels/cuda/kernel_counters.hpp"
#include "tests/kernels/cuda/kernel_under_test.hpp"
#include "tests/kernels/row_table.hpp"
#include "tests/software_gpu/software_gpu.hpp"

namespace hcp::test {
namespace {

/// Those kernels among all launched, in their order, whose names the caller wants; none may have findings.
std::vector<KernelCounters> counters_of(const std::string& work, const std::function<void()>& run,
                                        const std::function<bool(const std::string&)>& wanted) {
  static_cast<void>(software_gpu::take_launches());
  run();
  std::vector<KernelCounters> kernels;
  for (const software_gpu::Launch& launch : software_gpu::take_launches()) {
    for (const ptx::Finding& finding : launch.report.findings) {
      ADD_FAILURE() << to_string(finding);
    }
    const std::string name = kernel_name_of(launch.kernel);
    if (wanted(name)) {
      kernels.push_back({name, work, launch.report.counters});
    }
  }
  return kernels;
}

bool is_of_attention(const std::string& kernel) {
  return kernel.find("forward<") != std::string::npos || kernel.find("backward_") != std::string::npos;
}

/// Tiles that are full, partial and cut off by the end of the rows.
void add_attention(AttentionKernel& kernel, DataType type, std::int64_t dim_qk, std::int64_t dim_v,
                   double dropout, std::vector<KernelCounters>& all) {
  const SoftmaxCase setup{.attention = {.doc_lengths = {150},
                                        .causal = true,
                                        .heads_q = 2,
                                        .heads_kv = 1,
                                        .heads = {0, 0, 2},
                                        .dim_qk = dim_qk,
                                        .dim_v = dim_v,
                                        .type = type},
                          .dropout = dropout};
  const auto launched = counters_of(
      "150 tokens causal, 2 heads on 1", [&] { expect_exact(kernel, setup, whole(setup.attention)); },
      is_of_attention);
  EXPECT_GE(launched.size(), 3U);  // forward, dq, dk and dv
  all.insert(all.end(), launched.begin(), launched.end());
}

void add_all_attention(AttentionKernel& kernel, std::vector<KernelCounters>& all) {
  struct Dims {
    std::int64_t qk;
    std::int64_t v;
  };
  for (const double dropout : {0.0, 0.2}) {
    for (const DataType type : all_types) {
      for (const Dims dims : {Dims{64, 64}, Dims{128, 128}, Dims{192, 128}, Dims{256, 256}}) {
        if (type != DataType::fp32 || dims.qk == dims.v) {  // 192 / 128 of fp32 is the kernel of 256
          add_attention(kernel, type, dims.qk, dims.v, dropout, all);
        }
      }
    }
  }
}

/// Rows with and without a rest after the runs of eight elements.
void add_all_on_rows(AttentionKernel& kernel, std::vector<KernelCounters>& all) {
  constexpr std::int64_t rows = 40;
  constexpr std::int64_t heads = 3;
  constexpr std::int64_t dim = 40;
  constexpr std::int64_t elements = heads * dim + 3;
  const auto add = [&all](const std::string& work, const std::function<void()>& run) {
    const auto launched = counters_of(work, run, [](const std::string&) { return true; });
    EXPECT_EQ(launched.size(), 1U);
    all.insert(all.end(), launched.begin(), launched.end());
  };
  const Table floats{DataType::fp32, rows, elements + 5, 1};
  const Table sums{DataType::fp32, rows, elements + 5, 2};
  auto* const values = reinterpret_cast<float*>(sums.bytes.data());
  const auto* const lse = reinterpret_cast<const float*>(floats.bytes.data());
  std::vector<float> of_heads(heads, 0.5F);
  std::vector<float> of_rows(rows * heads, 1.0F);
  for (const DataType from : all_types) {
    const Table source{from, rows, elements + 5, 3};
    for (const DataType to : all_types) {
      const Table target{to, rows, elements + 5, 4};
      add("40 rows of 123 elements",
          [&] { kernel.copy_rows(source.const_view(), target.view(), rows, elements); });
      add("40 rows of 3 heads of 40", [&] {
        kernel.row_dot({source.bytes.data(), from, rows, heads, dim},
                       {target.bytes.data(), to, rows, heads, dim}, of_rows.data());
      });
    }
    add("40 rows of 123 elements",
        [&] { kernel.add_rows(source.const_view(), sums.view(), rows, elements); });
  }
  const std::string work = "40 rows of 3 heads";
  add(work + " of 40", [&] {
    kernel.finish_forward({values, of_rows.data(), of_rows.data()}, rows, heads, dim, values);
  });
  add(work, [&] { kernel.max_logits(lse, rows, heads, of_heads.data()); });
  add(work,
      [&] { kernel.sink_gradients(of_heads.data(), lse, of_rows.data(), rows, heads, of_heads.data()); });
  add("1000 elements", [&] {
    std::vector<float> target(1000);
    kernel.fill(target.data(), 1000, 0.5F);
  });
}

std::vector<std::string> lines_in(const std::string& file) {
  std::ifstream stream{file};
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

std::string nvcc_version() {
  const std::string build = cuda_build();  // version for architectures
  return build.substr(0, build.find(' '));
}

TEST(KernelCounters, AreThoseOfTheStoredFile) {
  const std::unique_ptr<AttentionKernel> kernel = make_kernel_under_test();
  std::vector<KernelCounters> all;
  add_all_attention(*kernel, all);
  add_all_on_rows(*kernel, all);
  for (const KernelCounters& one : all) {
    if (one.counts.of(ptx::InstructionKind::mma) > 0) {
      EXPECT_EQ(one.counts.shared_extra_phases, 0U) << "bank conflicts of " << one.kernel;
    }
  }
  const std::vector<std::string> counted = lines_of(all, nvcc_version());
  if (const char* file = std::getenv("HCP_WRITE_KERNEL_COUNTERS"); file != nullptr) {
    std::ofstream stream{file};
    for (const std::string& line : counted) {
      stream << line << '\n';
    }
    ASSERT_TRUE(stream.flush()) << "cannot write " << file;
    return;
  }
  for (const std::string& difference : differences(lines_in(HCP_KERNEL_COUNTERS), counted)) {
    ADD_FAILURE() << difference;
  }
}

/// Two kernels, of which the second did something more.
std::vector<KernelCounters> two_kernels(std::uint64_t ptx::Counters::*more) {
  std::vector<KernelCounters> kernels{{"one<64>", "some rows", {}}, {"other<64>", "some rows", {}}};
  if (more != nullptr) {
    ++(kernels[1].counts.*more);
  }
  return kernels;
}

TEST(KernelCountersFile, EveryDifferenceOfTheSameCompilerCounts) {
  const auto stored = lines_of(two_kernels(nullptr), "13.0.88");
  EXPECT_TRUE(differences(stored, lines_of(two_kernels(nullptr), "13.0.88")).empty());
  for (const auto more : {&ptx::Counters::warp_instructions, &ptx::Counters::global_load_bytes,
                          &ptx::Counters::shared_extra_phases}) {
    const auto found = differences(stored, lines_of(two_kernels(more), "13.0.88"));
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0], "stored:  " + stored[3]);
    EXPECT_NE(found[1].find("counted: other<64>; some rows; "), std::string::npos);
  }
  EXPECT_EQ(differences({stored.begin(), stored.end() - 1}, stored).size(), 1U);
}

TEST(KernelCountersFile, AnotherCompilerMayUseOtherInstructions) {
  const auto stored = lines_of(two_kernels(nullptr), "13.0.88");
  for (const auto more : {&ptx::Counters::warp_instructions, &ptx::Counters::global_load_sectors}) {
    EXPECT_TRUE(differences(stored, lines_of(two_kernels(more), "13.1.7")).empty());
  }
  for (const auto more : {&ptx::Counters::shared_extra_phases, &ptx::Counters::global_store_bytes}) {
    EXPECT_EQ(differences(stored, lines_of(two_kernels(more), "13.1.7")).size(), 2U);
  }
}

}  // namespace
}  // namespace hcp::test
