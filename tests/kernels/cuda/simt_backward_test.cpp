/// The kernels of the backward pass, compiled for the host, against attention by its definition: masks,
/// heads, tails, head dims, types, blocks of keys, dropout.
#include <gtest/gtest.h>

#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/cuda/backward_kernels.hpp"
#include "tests/kernels/cuda/simt_backward_kernel.hpp"
#include "tests/kernels/softmax_case.hpp"

namespace hcp::test {
namespace {

/// In the norm. P and dS are rounded to the storage type of two bytes, all else is fp32.
double tolerance_of(DataType type) {
  return type == DataType::bf16 ? 4e-3 : type == DataType::fp16 ? 5e-4 : 2e-6;
}

void expect_gradients(const SoftmaxCase& setup, const BlockSplit& split) {
  const Operands operands = random_operands(setup.attention, 7);
  const DenseSoftmax reference = dense_softmax(setup, operands);
  const SoftmaxRun run =
      run_softmax(*make_simt_backward_kernel(simt::Order::warp_wise), setup, operands, split);
  const double tolerance = tolerance_of(setup.attention.type);
  EXPECT_LE(relative_error(run.attention.dq, reference.attention.dq), tolerance);
  EXPECT_LE(relative_error(run.attention.dk, reference.attention.dk), tolerance);
  EXPECT_LE(relative_error(run.attention.dv, reference.attention.dv), tolerance);
}

void expect_gradients(const AttentionCase& attention, const BlockSplit& split) {
  expect_gradients(SoftmaxCase{.attention = attention}, split);
}
void expect_gradients(const AttentionCase& attention) {
  expect_gradients(attention, whole(attention));
}

class SimtBackward : public testing::TestWithParam<DataType> {};
INSTANTIATE_TEST_SUITE_P(Types, SimtBackward, testing::Values(DataType::fp32, DataType::bf16, DataType::fp16),
                         [](const auto& info) { return std::string{name_of(info.param)}; });

TEST_P(SimtBackward, EveryMask) {
  std::mt19937 random{5};
  for (const MaskKind kind : all_mask_kinds) {
    SCOPED_TRACE(name_of(kind));
    AttentionCase attention{.dim_qk = 16, .dim_v = 16, .type = GetParam()};
    attention.any_mask = random_definition(kind, random, 4, 90);
    SCOPED_TRACE(text_of(*attention.any_mask));
    expect_gradients(attention);
  }
}

TEST_P(SimtBackward, FullVisitsBesidePartialOnes) {
  expect_gradients({.doc_lengths = {330}, .causal = true, .heads_q = 1, .heads_kv = 1, .type = GetParam()});
}

TEST_P(SimtBackward, LengthsAroundATile) {
  for (const std::int64_t length : {1, 31, 32, 33, 63, 64, 65, 127, 128, 129}) {
    SCOPED_TRACE(length);
    expect_gradients({.doc_lengths = {length}, .heads_q = 1, .heads_kv = 1, .type = GetParam()});
  }
}

TEST_P(SimtBackward, HeadDims) {
  struct Dims {
    std::int64_t qk;
    std::int64_t v;
  };
  for (const Dims dims : {Dims{8, 8}, Dims{64, 64}, Dims{72, 40}, Dims{128, 128}, Dims{192, 128},
                          Dims{136, 8}, Dims{8, 136}, Dims{256, 256}}) {
    SCOPED_TRACE(std::to_string(dims.qk) + " / " + std::to_string(dims.v));
    expect_gradients({.doc_lengths = {70, 65},
                      .causal = true,
                      .heads_q = 1,
                      .heads_kv = 1,
                      .dim_qk = dims.qk,
                      .dim_v = dims.v,
                      .type = GetParam()});
  }
}

TEST_P(SimtBackward, QueryHeadsShareKvHeads) {
  expect_gradients(
      {.doc_lengths = {100}, .heads_q = 4, .heads_kv = 1, .heads = {0, 0, 4}, .type = GetParam()});
  // Of 28 query heads and 7 KV heads: 14 .. 18 begin in the middle of KV head 3.
  expect_gradients({.doc_lengths = {90},
                    .causal = true,
                    .heads_q = 5,
                    .heads_kv = 2,
                    .heads = {14, 3, 4},
                    .type = GetParam()});
}

TEST_P(SimtBackward, BlocksOfQueriesAndKeys) {
  const AttentionCase attention{
      .doc_lengths = {150, 1, 83}, .causal = true, .dim_qk = 24, .dim_v = 40, .type = GetParam()};
  expect_gradients(attention, zigzag(attention, 2));
  expect_gradients(attention, {ranges_of_lengths(234, {101, 1, 70}), ranges_of_lengths(234, {7, 100, 65})});
}

TEST_P(SimtBackward, Dropout) {
  for (const std::int64_t dim : {16, 144}) {  // tiles of 64 and of 32 keys
    SCOPED_TRACE(dim);
    const SoftmaxCase setup{.attention = {.doc_lengths = {90, 0, 37, 66},
                                          .causal = dim == 16,
                                          .heads_q = 5,
                                          .heads_kv = 2,
                                          .heads = {5, 1, 4},
                                          .dim_qk = dim,
                                          .dim_v = dim,
                                          .type = GetParam()},
                            .documents_per_row = 2,
                            .dropout = 0.3,
                            .layer = 3,
                            .first_head = 28};
    expect_gradients(setup, whole(setup.attention));
    if (dim == 16) {
      expect_gradients(setup, {ranges_of_lengths(193, {150, 43}), ranges_of_lengths(193, {70, 7, 65, 3})});
    }
  }
}

TEST_P(SimtBackward, BitsDoNotDependOnTheOrderOfThreads) {
  const SoftmaxCase setup{.attention = {.doc_lengths = {150},
                                        .causal = true,
                                        .heads_q = 2,
                                        .heads_kv = 1,
                                        .heads = {0, 0, 2},
                                        .type = GetParam()},
                          .dropout = 0.1,
                          .sinks = {0.5F, -1.0F}};
  const Operands operands = random_operands(setup.attention, 3);
  const BlockSplit split = whole(setup.attention);
  const SoftmaxRun once =
      run_softmax(*make_simt_backward_kernel(simt::Order::abreast), setup, operands, split);
  for (const simt::Order order : simt::all_orders) {
    EXPECT_EQ(run_softmax(*make_simt_backward_kernel(order), setup, operands, split), once);
  }
}

/// Rows that saw no key anywhere have lse = -inf; what they would bring must not become a NaN.
TEST_P(SimtBackward, RowsThatSawNothingAddNothing) {
  AttentionCase attention{.type = GetParam()};
  attention.any_mask =
      MaskDefinition{.kind = MaskKind::padding, .doc_lengths = {40, 30}, .special_lengths = {25, 0}};
  expect_gradients(attention);
}

TEST(BackwardKernels, HeadDimsThatNoKernelTakesAreRefused) {
  for (const int dim : {0, 4, 12, 264}) {
    EXPECT_THROW(static_cast<void>(cuda::backward_keys_kernel_entries(DataType::bf16, dim, 64, false)),
                 std::invalid_argument);
    EXPECT_THROW(static_cast<void>(cuda::backward_queries_kernel_entry(DataType::fp32, 64, dim, true)),
                 std::invalid_argument);
  }
}

}  // namespace
}  // namespace hcp::test
