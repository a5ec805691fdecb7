/// What kernels of devices promise besides the right values: rows that see nothing, NaN, which elements drop,
/// large scores, the same bits every time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "tests/kernels/cuda/attention_checks.hpp"
#include "tests/kernels/cuda/kernel_under_test.hpp"

namespace hcp::test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

class KernelContract : public testing::TestWithParam<DataType> {
 protected:
  std::unique_ptr<AttentionKernel> kernel_ = make_kernel_under_test();
};
INSTANTIATE_TEST_SUITE_P(Types, KernelContract,
                         testing::Values(DataType::fp32, DataType::bf16, DataType::fp16),
                         [](const auto& info) { return std::string{name_of(info.param)}; });

/// With scores of 0 and values that are unit vectors, out is what is left of P.
TEST_P(KernelContract, TheElementsThatDropAreThoseOfTheDefinition) {
  const SoftmaxCase setup{
      .attention =
          {.doc_lengths = {200}, .heads_q = 1, .heads_kv = 1, .dim_qk = 8, .dim_v = 200, .type = GetParam()},
      .dropout = 0.25};
  Operands operands = random_operands(setup.attention, 1);
  std::ranges::fill(operands.q.values, 0.0F);
  for (std::size_t i = 0; i < operands.v.values.size(); ++i) {
    operands.v.values[i] = i / 200 == i % 200 ? 1.0F : 0.0F;
  }
  for (StoredTensor* tensor : {&operands.q, &operands.v}) {
    round_to(tensor->type, tensor->values.data(), tensor->bytes.data(), tensor->values.size());
  }
  const auto dropped_by = [&](AttentionKernel& kernel) {
    std::vector<bool> dropped;
    const SoftmaxRun run = run_softmax(kernel, setup, operands, zigzag(setup.attention, 2));
    std::ranges::transform(run.attention.out, std::back_inserter(dropped),
                           [](float element) { return element == 0.0F; });
    return dropped;
  };
  const std::vector<bool> dropped = dropped_by(*kernel_);
  EXPECT_EQ(dropped, dropped_by(*make_reference_attention_kernel()));
  EXPECT_NEAR(static_cast<double>(std::ranges::count(dropped, true)), 10000.0, 400.0);
}

/// Keys lie after the queries: most rows see nothing, and keep what they had.
TEST_P(KernelContract, RowsThatSeeNothingKeepTheirBits) {
  const AttentionCase setup{
      .doc_lengths = {200}, .causal = true, .heads_q = 1, .heads_kv = 1, .dim_v = 24, .type = GetParam()};
  const Operands operands = random_operands(setup, 2);
  const AttentionMask mask = setup.mask();
  const PositionSet queries{{0, 150}};
  const PositionSet keys{{140, 200}};
  const StoredTensor q = operands.q.rows_at(queries);
  const StoredTensor k = operands.k.rows_at(keys);
  const StoredTensor v = operands.v.rows_at(keys);
  std::vector<float> out(150 * 24, 0.1F);
  std::vector<float> max(150, 3.0F);
  std::vector<float> sum(150, 0.7F);
  max[5] = -infinity;
  sum[5] = 0.0F;
  const auto before = std::make_tuple(out, max, sum);
  kernel_->forward_block({&mask, setup.heads, setup.softmax_scale()}, {q.view(), queries},
                         {k.view(), v.view(), keys}, {out.data(), max.data(), sum.data()});
  for (std::size_t row = 0; row < 150; ++row) {
    const bool sees = row >= 140;
    EXPECT_EQ(sum[row] != std::get<2>(before)[row], sees) << row;
    EXPECT_TRUE(sees || max[row] == std::get<1>(before)[row]) << row;
    for (std::size_t i = 24 * row; i < 24 * (row + 1); ++i) {
      EXPECT_EQ(out[i] != 0.1F, sees) << row;
    }
  }
}

TEST_P(KernelContract, NanOfAKeyReachesTheRowsThatSeeItAndNoOthers) {
  const SoftmaxCase setup{
      .attention = {.doc_lengths = {100}, .causal = true, .heads_q = 1, .heads_kv = 1, .type = GetParam()}};
  Operands operands = random_operands(setup.attention, 2);
  std::fill_n(operands.k.values.begin() + 70 * 16, 16, std::numeric_limits<float>::quiet_NaN());
  round_to(operands.k.type, operands.k.values.data(), operands.k.bytes.data(), operands.k.values.size());
  const SoftmaxRun run = run_softmax(*kernel_, setup, operands, whole(setup.attention));
  for (std::size_t row = 0; row < 100; ++row) {
    EXPECT_EQ(std::isnan(run.attention.out[16 * row]), row >= 70) << row;
    EXPECT_EQ(std::isnan(run.attention.lse[row]), row >= 70) << row;
  }
}

/// exp2(s - max) with s of fp32: its error grows with the scores.
TEST(KernelContractOfFp32, LargeScores) {
  AttentionCase setup{
      .doc_lengths = {200}, .causal = true, .heads_q = 1, .heads_kv = 1, .dim_qk = 128, .dim_v = 64};
  for (const float magnitude : {1.0F, 5.0F, 25.0F}) {
    setup.q_magnitude = magnitude;
    const Operands operands = random_operands(setup, 11);
    const DenseSoftmax reference = dense_softmax({.attention = setup}, operands);
    const SoftmaxRun run =
        run_softmax(*make_kernel_under_test(), {.attention = setup}, operands, whole(setup));
    const double error = relative_error(run.attention.out, reference.attention.out);
    std::printf("largest score %.0f: error of out %.1e\n", reference.max_logits.values[0], error);
    EXPECT_LE(error, magnitude > 10.0F ? 4e-6 : 2e-6);  // as the host kernel
  }
}

TEST_P(KernelContract, ASoftmaxScaleOfZeroIsAMean) {
  const AttentionCase setup{
      .doc_lengths = {70}, .causal = true, .heads_q = 1, .heads_kv = 1, .type = GetParam()};
  Operands operands = random_operands(setup, 2);
  const AttentionMask mask = setup.mask();
  std::vector<float> out(70 * 16);
  std::vector<float> max(70, -infinity);
  std::vector<float> sum(70);
  const PositionSet all{{0, 70}};
  kernel_->forward_block({&mask, setup.heads, 0.0F}, {operands.q.view(), all},
                         {operands.k.view(), operands.v.view(), all}, {out.data(), max.data(), sum.data()});
  for (std::size_t row = 0; row < 70; ++row) {
    EXPECT_EQ(sum[row], static_cast<float>(row + 1));
    EXPECT_NEAR(max[row], 0.0F, 1e-30F);
  }
}

/// Rows that saw no key anywhere have lse = -inf; what they would bring must not become a NaN.
TEST_P(KernelContract, RowsAndKeysThatMeetNobodyGetZeros) {
  AttentionCase attention{.heads_q = 1, .heads_kv = 1, .type = GetParam()};
  attention.any_mask =
      MaskDefinition{.kind = MaskKind::padding, .doc_lengths = {40, 30}, .special_lengths = {25, 0}};
  expect_exact(*kernel_, {.attention = attention}, whole(attention));
  const AttentionRun run =
      run_softmax(*kernel_, {.attention = attention}, random_operands(attention, 7), whole(attention))
          .attention;
  for (const std::vector<float>* result : {&run.out, &run.dq, &run.dk, &run.dv}) {
    EXPECT_THAT((std::vector<float>{result->begin() + 25 * 16, result->end()}), testing::Each(0.0F));
  }
  EXPECT_THAT((std::vector<float>{run.lse.begin() + 25, run.lse.end()}), testing::Each(-infinity));
}

TEST_P(KernelContract, RowsWithoutAnyKeyAddNothingBackward) {
  const AttentionCase setup{.doc_lengths = {70}, .heads_q = 1, .heads_kv = 1, .type = GetParam()};
  const Operands operands = random_operands(setup, 5);
  const AttentionMask mask = setup.mask();
  const PositionSet all{{0, 70}};
  const std::vector<float> lse(70, -infinity);
  const std::vector<float> delta(70, 1.0F);
  std::vector<float> dq(operands.q.values.size(), 0.5F);
  std::vector<float> dk(operands.k.values.size(), 0.5F);
  std::vector<float> dv(operands.v.values.size(), 0.5F);
  kernel_->backward_block(
      {&mask, setup.heads, setup.softmax_scale()},
      {{operands.q.view(), all}, operands.dout.view(), lse.data(), delta.data(), dq.data()},
      {operands.k.view(), operands.v.view(), all}, {dk.data(), dv.data()});
  EXPECT_THAT(dq, testing::Each(0.5F));
  EXPECT_THAT(dk, testing::Each(0.5F));
  EXPECT_THAT(dv, testing::Each(0.5F));
}

TEST_P(KernelContract, BlocksWithoutRowsChangeNothing) {
  const AttentionCase setup{.doc_lengths = {20}, .heads_q = 1, .heads_kv = 1, .type = GetParam()};
  const Operands operands = random_operands(setup, 5);
  const AttentionMask mask = setup.mask();
  const BlockRule rule{&mask, setup.heads, setup.softmax_scale()};
  const PositionSet all{{0, 20}};
  const QueryBlock query{operands.q.view(), all};
  const KvBlock kv{operands.k.view(), operands.v.view(), all};
  const ConstTensorView no_rows{nullptr, GetParam(), 0, 1, 16};
  std::vector<float> out(operands.dout.values.size(), 0.25F);
  std::vector<float> max(20, 1.5F);
  std::vector<float> sum(20, 3.0F);
  kernel_->forward_block(rule, query, {no_rows, no_rows, {}}, {out.data(), max.data(), sum.data()});
  kernel_->forward_block(rule, {no_rows, {}}, kv, {});
  kernel_->backward_block(rule, {query, operands.dout.view(), max.data(), sum.data(), out.data()},
                          {no_rows, no_rows, {}}, {});
  kernel_->backward_block(rule, {{no_rows, {}}, no_rows}, kv, {out.data(), out.data()});
  EXPECT_THAT(out, testing::Each(0.25F));
  EXPECT_THAT(max, testing::Each(1.5F));
  EXPECT_THAT(sum, testing::Each(3.0F));
}

TEST_P(KernelContract, TheSameBitsTwice) {
  const SoftmaxCase setup{.attention = {.doc_lengths = {150},
                                        .causal = true,
                                        .heads_kv = 1,
                                        .heads = {0, 0, 2},
                                        .type = GetParam()},
                          .dropout = 0.1,
                          .sinks = {0.5F, -1.0F}};
  const Operands operands = random_operands(setup.attention, 3);
  const BlockSplit split = zigzag(setup.attention, 2);
  const SoftmaxRun once = run_softmax(*kernel_, setup, operands, split);
  EXPECT_EQ(run_softmax(*kernel_, setup, operands, split), once);
  EXPECT_EQ(run_softmax(*make_kernel_under_test(), setup, operands, split), once);
}

}  // namespace
}  // namespace hcp::test
