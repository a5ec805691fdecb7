/// The kernels on rows with any number of blocks: one that goes round, some, more than there are units.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/row_kernel_entries.hpp"
#include "kernels/cuda/row_parameters.hpp"
#include "kernels/cuda/stream.hpp"
#include "tests/kernels/cuda/device_copy.hpp"
#include "tests/kernels/row_table.hpp"

namespace hcp::test {
namespace {

constexpr std::int32_t rows = 50;
constexpr std::int32_t heads = 3;
constexpr std::int32_t dim = 44;
constexpr std::int64_t elements = rows * heads * dim;

/// What a kernel reads, and what it writes: filled anew before each launch.
class RowKernelGrids : public testing::Test {
 protected:
  /// @param run  launches with so many blocks; gets where to write
  void expect_same_bits(const std::function<void(std::int64_t blocks, float* target)>& run) {
    std::vector<std::uint32_t> expected;
    for (const std::int64_t blocks : {1, 2, 7, 400}) {
      const DeviceCopy target{*stream_, values_.bytes.data(), elements * std::int64_t{sizeof(float)}};
      run(blocks, target.floats());
      std::vector<std::uint32_t> result(static_cast<std::size_t>(elements));
      target.read(result.data());
      if (blocks == 1) {
        expected = result;
        EXPECT_NE(std::memcmp(result.data(), values_.bytes.data(), result.size() * sizeof(float)), 0);
      }
      EXPECT_TRUE(result == expected) << blocks << " blocks";
    }
  }

  std::shared_ptr<cuda::Stream> stream_ = std::make_shared<cuda::Stream>();
  cuda::Launcher launcher_{stream_};
  Table values_{DataType::fp32, rows* heads, dim, 1};
  Table others_{DataType::fp32, rows* heads, dim, 2};
  DeviceCopy source_{*stream_, others_.bytes.data(), elements* std::int64_t{sizeof(float)}};
};

TEST_F(RowKernelGrids, FinishForward) {
  expect_same_bits([&](std::int64_t blocks, float* target) {
    launcher_.launch(cuda::finish_forward_kernel_entry(), {blocks},
                     cuda::FinishForwardParameters{.out = target,
                                                   .max = source_.floats(),
                                                   .sum = source_.floats() + rows * heads,
                                                   .sinks = source_.floats(),
                                                   .lse = source_.floats() + 2 * rows * heads,
                                                   .rows = rows * heads,
                                                   .heads = heads,
                                                   .dim_v = dim});
  });
}

TEST_F(RowKernelGrids, MaxLogits) {
  expect_same_bits([&](std::int64_t blocks, float* target) {
    launcher_.launch(
        cuda::max_logits_kernel_entry(), {blocks},
        cuda::MaxLogitsParameters{.max = source_.floats(), .rows = rows, .heads = heads, .logits = target});
  });
}

TEST_F(RowKernelGrids, SinkGradients) {
  expect_same_bits([&](std::int64_t blocks, float* target) {
    launcher_.launch(cuda::sink_gradients_kernel_entry(), {blocks},
                     cuda::SinkGradientsParameters{.sinks = source_.floats(),
                                                   .lse = source_.floats() + heads,
                                                   .delta = source_.floats() + 2 * rows * heads,
                                                   .rows = rows,
                                                   .heads = heads,
                                                   .dsinks = target});
  });
}

TEST_F(RowKernelGrids, RowDot) {
  expect_same_bits([&](std::int64_t blocks, float* target) {
    launcher_.launch(cuda::row_dot_kernel_entry(DataType::fp32, DataType::fp32), {blocks},
                     cuda::RowDotParameters{.out = source_.floats(),
                                            .dout = source_.floats(),
                                            .delta = target,
                                            .rows = rows * heads,
                                            .dim = dim});
  });
}

TEST_F(RowKernelGrids, CopyAndAddRows) {
  for (const cuda::KernelEntry* kernel : {&cuda::copy_rows_kernel_entry(DataType::fp32, DataType::fp32),
                                          &cuda::add_rows_kernel_entry(DataType::fp32)}) {
    SCOPED_TRACE(kernel->name);
    expect_same_bits([&](std::int64_t blocks, float* target) {
      launcher_.launch(*kernel, {blocks},
                       cuda::RowTablesParameters{.source = source_.data(),
                                                 .target = target,
                                                 .source_stride = dim,
                                                 .target_stride = dim,
                                                 .rows = rows * heads,
                                                 .elements = dim - 1});
    });
  }
}

TEST_F(RowKernelGrids, Fill) {
  expect_same_bits([&](std::int64_t blocks, float* target) {
    launcher_.launch(cuda::fill_kernel_entry(), {blocks},
                     cuda::FillParameters{.target = target, .count = elements - 1, .value = 0.5F});
  });
}

}  // namespace
}  // namespace hcp::test
