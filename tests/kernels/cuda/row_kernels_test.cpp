/// The kernels on rows against the operations of the host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/row_operations.hpp"
#include "tests/kernels/cuda/kernel_under_test.hpp"
#include "tests/kernels/row_table.hpp"
#include "tests/kernels/softmax_case.hpp"

namespace hcp::test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Elements, strides, and where the first rows begin: aligned to 16 bytes with and without a rest, and not
/// aligned; of one element and of one run of elements a lane has three, four, or more.
struct RowSizes {
  std::int64_t elements;
  std::int64_t source_stride;
  std::int64_t target_stride;
  std::int64_t source_first = 0;
  std::int64_t target_first = 0;
};
constexpr RowSizes row_sizes[]{{8, 8, 8},       {24, 24, 48},       {301, 304, 312},    {300, 301, 320},
                               {13, 16, 13},    {24, 32, 32, 1, 0}, {24, 32, 32, 0, 3}, {40, 48, 48, 8, 8},
                               {110, 111, 112}, {359, 361, 360},    {1821, 1824, 1832}};
constexpr std::int64_t rows = 21;  // more than two blocks do at a time

class RowKernels : public testing::Test {
 protected:
  std::unique_ptr<AttentionKernel> kernel_ = make_kernel_under_test();
};

/// From an element of the first row on.
template <typename Byte>
BasicRowTable<Byte> from_element(std::int64_t first, const BasicRowTable<Byte>& table) {
  return {table.data + first * static_cast<std::int64_t>(size_of(table.type)), table.type, table.stride};
}

void expect_equal(const Table& a, const Table& b) {
  const std::vector<std::byte> left = a.bytes.copy();
  const std::vector<std::byte> right = b.bytes.copy();
  EXPECT_EQ(left, right);
}

TEST_F(RowKernels, CopyConvertsEveryPairOfTypesAndLeavesTheGapsAlone) {
  for (const RowSizes& sizes : row_sizes) {
    for (const DataType from : all_types) {
      for (const DataType to : all_types) {
        const Table source{from, rows, sizes.source_stride, 3};
        const Table target{to, rows, sizes.target_stride};
        const Table expected{to, rows, sizes.target_stride};
        const auto from_view = from_element(sizes.source_first, source.const_view());
        kernel_->copy_rows(from_view, from_element(sizes.target_first, target.view()), rows, sizes.elements);
        copy_rows_host(from_view, from_element(sizes.target_first, expected.view()), rows, sizes.elements);
        SCOPED_TRACE(std::to_string(sizes.elements) + std::string{name_of(from)} + std::string{name_of(to)});
        expect_equal(target, expected);
      }
    }
  }
}

TEST_F(RowKernels, EqualTypesAreCopiedBitByBit) {
  for (const DataType type : all_types) {
    const Table source{type, 8, 8};
    std::memset(source.bytes.data(), 0xff, source.bytes.copy().size());  // a NaN with every bit set
    const Table target{type, 8, 8};
    kernel_->copy_rows(source.const_view(), target.view(), 8, 8);
    expect_equal(target, source);
  }
}

TEST_F(RowKernels, AddWidensEveryTypeIntoFp32) {
  for (const RowSizes& sizes : row_sizes) {
    for (const DataType from : all_types) {
      const Table source{from, rows, sizes.source_stride, 4};
      const Table target{DataType::fp32, rows, sizes.target_stride, 5};
      const Table expected{DataType::fp32, rows, sizes.target_stride, 5};
      const auto from_view = from_element(sizes.source_first, source.const_view());
      kernel_->add_rows(from_view, from_element(sizes.target_first, target.view()), rows, sizes.elements);
      add_rows_host(from_view, from_element(sizes.target_first, expected.view()), rows, sizes.elements);
      expect_equal(target, expected);
    }
  }
}

TEST_F(RowKernels, RowDot) {
  constexpr std::int64_t heads = 3;
  for (const DataType left : all_types) {
    for (const DataType right : all_types) {
      for (const std::int64_t dim : {8, 13, 110, 128, 260, 880}) {
        const Table out{left, rows, heads * dim, 6};
        const Table dout{right, rows, heads * dim, 7};
        std::vector<float> delta(rows * heads, -1.0F);
        kernel_->row_dot({out.bytes.data(), left, rows, heads, dim},
                         {dout.bytes.data(), right, rows, heads, dim}, delta.data());
        for (std::int64_t row = 0; row < rows * heads; ++row) {
          double sum = 0.0;
          double magnitude = 0.0;
          for (std::int64_t i = 0; i < dim; ++i) {
            const double product = static_cast<double>(out.value(row / heads, row % heads * dim + i)) *
                                   static_cast<double>(dout.value(row / heads, row % heads * dim + i));
            sum += product;
            magnitude += std::abs(product);
          }
          ASSERT_NEAR(delta[static_cast<std::size_t>(row)], sum, 1e-6 * magnitude);
        }
      }
    }
  }
}

TEST_F(RowKernels, FinishForwardAgreesWithTheHost) {
  constexpr std::int64_t heads = 4;
  constexpr std::int64_t dim = 40;
  const std::vector<float> sinks{0.5F, -infinity, 1e4F, -1e4F};
  for (const float* const sink : {static_cast<const float*>(nullptr), sinks.data()}) {
    const Table out{DataType::fp32, rows * heads, dim, 8};
    const Table expected{DataType::fp32, rows * heads, dim, 8};
    std::vector<float> max;
    std::vector<float> sum;
    for (std::int64_t row = 0; row < rows * heads; ++row) {
      const bool saw_nothing = row % 5 == 0;
      max.push_back(saw_nothing ? -infinity : static_cast<float>(row - 20));
      sum.push_back(saw_nothing      ? 0.0F
                    : row % 11 == 10 ? std::numeric_limits<float>::quiet_NaN()
                                     : 1.0F + static_cast<float>(row) / 3.0F);
      for (std::int64_t i = 0; saw_nothing && i < dim; ++i) {
        for (const Table* const table : {&out, &expected}) {
          reinterpret_cast<float*>(table->bytes.data())[row * dim + i] = 0.0F;
        }
      }
    }
    std::vector<float> expected_lse(max.size());
    finish_forward_host({reinterpret_cast<float*>(expected.bytes.data()), max.data(), sum.data()}, rows,
                        heads, dim, expected_lse.data(), sink);
    kernel_->finish_forward({reinterpret_cast<float*>(out.bytes.data()), max.data(), sum.data()}, rows, heads,
                            dim, max.data(), sink);
    for (std::size_t i = 0; i < max.size(); ++i) {
      if (std::isnan(expected_lse[i])) {
        EXPECT_TRUE(std::isnan(max[i])) << i;
      } else if (std::isinf(expected_lse[i])) {
        EXPECT_EQ(max[i], expected_lse[i]);
      } else {
        EXPECT_NEAR(max[i], expected_lse[i], 1e-6F * (1.0F + std::abs(expected_lse[i])));
      }
    }
    for (std::int64_t row = 0; row < rows * heads; ++row) {
      for (std::int64_t i = 0; i < dim; ++i) {
        if (std::isnan(expected.value(row, i))) {
          ASSERT_TRUE(std::isnan(out.value(row, i)));
        } else {
          ASSERT_NEAR(out.value(row, i), expected.value(row, i), 4e-6F * std::abs(expected.value(row, i)));
        }
      }
    }
  }
}

TEST_F(RowKernels, SinksAgreeWithTheDefinition) {
  const SoftmaxCase setup{.attention = {.doc_lengths = {300}, .causal = true, .heads_q = 5, .heads_kv = 5},
                          .dropout = 0.1,
                          .sinks = {0.0F, 1.5F, -2.0F, 20.0F, -infinity}};
  const Operands operands = random_operands(setup.attention, 11);
  const DenseSoftmax reference = dense_softmax(setup, operands);
  const SoftmaxRun run = run_softmax(*kernel_, setup, operands, whole(setup.attention));
  EXPECT_LE(relative_error(run.dsinks, reference.dsinks), 2e-6);
  EXPECT_LE(relative_error(run.max_logits, reference.max_logits), 2e-6);
}

TEST_F(RowKernels, HugeSinksTakeEverything) {
  const AttentionCase attention{.doc_lengths = {70}};
  const SoftmaxCase setup{.attention = attention, .sinks = {1e38F, 1e4F}};
  const Operands operands = random_operands(attention, 3);
  const SoftmaxRun run = run_softmax(*kernel_, setup, operands, whole(attention));
  EXPECT_THAT(run.attention.out, testing::Each(0.0F));
  EXPECT_THAT(run.attention.dq, testing::Each(0.0F));
  EXPECT_THAT(run.dsinks, testing::Each(0.0F));
}

TEST_F(RowKernels, MaxLogitsOfARankThatSeesNothing) {
  std::vector<float> logits(3, 7.0F);
  kernel_->max_logits(nullptr, 0, 3, logits.data());
  EXPECT_THAT(logits, testing::Each(-infinity));
  const std::vector<float> max{-infinity, 2.0F, -5.0F, -infinity, 1.0F, -4.0F};
  kernel_->max_logits(max.data(), 2, 3, logits.data());
  EXPECT_EQ(logits[0], -infinity);
  EXPECT_FLOAT_EQ(logits[1], 2.0F * std::log(2.0F));
  EXPECT_FLOAT_EQ(logits[2], -4.0F * std::log(2.0F));
}

TEST_F(RowKernels, FillAndEmptyTables) {
  std::vector<float> values(1300, 0.0F);
  kernel_->fill(values.data(), 1299, 2.5F);
  EXPECT_EQ(values.back(), 0.0F);
  values.pop_back();
  EXPECT_THAT(values, testing::Each(2.5F));
  kernel_->copy_rows({nullptr, DataType::bf16, 0}, {nullptr, DataType::fp32, 0}, 0, 8);
  kernel_->add_rows({nullptr, DataType::bf16, 0}, {nullptr, DataType::fp32, 0}, 8, 0);
  kernel_->finish_forward({}, 0, 4, 8, nullptr);
}

}  // namespace
}  // namespace hcp::test
