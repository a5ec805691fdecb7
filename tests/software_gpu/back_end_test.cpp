/// The first steps on a device: the whole way from the back end to a kernel and back.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/cuda/back_end.hpp"
#include "kernels/cuda/check.hpp"
#include "kernels/cuda/stream.hpp"

namespace hcp::test {
namespace {

/// Values on the device.
class OnDevice {
 public:
  OnDevice(BackEnd& back_end, const std::vector<float>& values)
      : back_end_{back_end},
        bytes_{std::ssize(values) * std::int64_t{sizeof(float)}},
        data_{back_end.memory->allocate(bytes_)} {
    copy(data_, values.data(), cudaMemcpyHostToDevice);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() { back_end_.memory->release(data_, bytes_); }

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] float* floats() const { return reinterpret_cast<float*>(data_); }
  [[nodiscard]] std::vector<float> values() const {
    std::vector<float> result(static_cast<std::size_t>(bytes_) / sizeof(float));
    copy(result.data(), data_, cudaMemcpyDeviceToHost);
    return result;
  }

 private:
  void copy(void* target, const void* source, cudaMemcpyKind kind) const {
    cuda::check(
        cudaMemcpyAsync(target, source, static_cast<std::size_t>(bytes_), kind, back_end_.stream->get()),
        "cudaMemcpyAsync");
    back_end_.stream->synchronise();
  }

  BackEnd& back_end_;
  std::int64_t bytes_;
  std::byte* data_;
};

TEST(CudaBackEnd, FillsAndCopiesRows) {
  BackEnd back_end = make_cuda_back_end(0);
  OnDevice target{back_end, std::vector<float>(300, 1.0F)};
  back_end.kernel->fill(target.floats(), 299, 2.5F);
  std::vector<float> expected(300, 2.5F);
  expected.back() = 1.0F;
  EXPECT_EQ(target.values(), expected);

  const OnDevice source{back_end, {1, 2, 3, 4, 5, 6}};
  back_end.kernel->copy_rows({source.data(), DataType::fp32, 3}, {target.data(), DataType::fp32, 10}, 2, 3);
  std::ranges::copy(std::vector<float>{1, 2, 3}, expected.begin());
  std::ranges::copy(std::vector<float>{4, 5, 6}, expected.begin() + 10);
  EXPECT_EQ(target.values(), expected);
}

/// Rows of one head, filled up with zeros.
std::vector<float> rows_of_dim_8(const std::vector<std::vector<float>>& rows) {
  std::vector<float> result;
  for (const std::vector<float>& row : rows) {
    result.insert(result.end(), row.begin(), row.end());
    result.resize((result.size() + 7) / 8 * 8);
  }
  return result;
}

/// One query that sees keys 0 and 1 of three: softmax of two scores, by hand.
TEST(CudaBackEnd, ForwardOfOneRow) {
  BackEnd back_end = make_cuda_back_end(0);
  const OnDevice q{back_end, rows_of_dim_8({{1}})};
  const OnDevice k{back_end, rows_of_dim_8({{1, 5}, {3, 5}, {100}})};
  const OnDevice v{back_end, rows_of_dim_8({{10}, {20, 1}, {1000, 1000}})};
  const OnDevice out{back_end, rows_of_dim_8({{0}})};
  const OnDevice max{back_end, {-std::numeric_limits<float>::infinity()}};
  const OnDevice sum{back_end, {0}};
  const OnDevice lse{back_end, {0}};
  const std::vector<std::int64_t> offsets{0, 3};
  const AttentionMask mask = AttentionMask::causal(offsets);
  const std::vector<PositionRange> query_positions{{.begin = 1, .end = 2}};
  const std::vector<PositionRange> key_positions{{.begin = 0, .end = 3}};
  const BlockRule rule{.mask = &mask, .heads = {}, .softmax_scale = 0.5F, .dropout = {}};
  const RunningOutput running{.out = out.floats(), .max = max.floats(), .sum = sum.floats()};
  back_end.kernel->forward_block(rule,
                                 {.q = {q.data(), DataType::fp32, 1, 1, 8}, .positions = query_positions},
                                 {.k = {k.data(), DataType::fp32, 3, 1, 8},
                                  .v = {v.data(), DataType::fp32, 3, 1, 8},
                                  .positions = key_positions},
                                 running);
  back_end.kernel->finish_forward(running, 1, 1, 8, lse.floats());
  const double weight = 1.0 / (1.0 + std::exp(-1.0));  // of key 1: its score is 1.5, that of key 0 is 0.5
  EXPECT_NEAR(out.values()[0], 10 * (1 - weight) + 20 * weight, 2e-5);
  EXPECT_NEAR(out.values()[1], weight, 1e-6);
  EXPECT_NEAR(lse.values()[0], std::log(std::exp(0.5) + std::exp(1.5)), 1e-6);
}

}  // namespace
}  // namespace hcp::test
