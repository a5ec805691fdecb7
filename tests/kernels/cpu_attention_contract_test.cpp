/// What the kernel interface promises besides the right values: bits, limits of the number range, refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include "kernels/attention_kernel.hpp"
#include "kernels/cpu/peak.hpp"
#include "tests/kernels/attention_run.hpp"
#include "tests/kernels/dense_attention.hpp"
#include "tests/kernels/refused_arguments.hpp"

namespace hcp::test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

TEST(CpuAttentionBits, DoNotDependOnThreadsOrTiming) {
  const std::vector<AttentionCase> cases{
      {.doc_lengths = {1100}, .causal = true, .heads_q = 1, .heads_kv = 1, .dim_qk = 40, .dim_v = 24},
      {.doc_lengths = {300, 20, 180}, .heads_q = 5, .heads_kv = 2, .heads = {5, 1, 4}},
      {.doc_lengths = {400}, .causal = true, .heads_q = 4, .heads_kv = 4, .type = DataType::bf16},
  };
  for (const AttentionCase& setup : cases) {
    const Operands operands = random_operands(setup, 3);
    const BlockSplit split = zigzag(setup, 2);
    const AttentionRun one = run_attention(*make_cpu_attention_kernel(1), setup, operands, split);
    for (const int threads : {1, 2, 3, 7}) {
      const auto kernel = make_cpu_attention_kernel(threads);
      for (int repetition = 0; repetition < 3; ++repetition) {
        EXPECT_TRUE(run_attention(*kernel, setup, operands, split) == one) << threads << " threads";
      }
    }
  }
}

TEST(CpuAttentionBits, ARowThatSeesNoKeyOfTheBlockKeepsItsBits) {
  const AttentionCase setup{.doc_lengths = {200}, .causal = true};
  const Operands operands = random_operands(setup, 5);
  const PositionSet queries{{0, 200}};
  for (const std::size_t first : {120U, 121U}) {  // a register tile has 6 rows: at its edge, and inside
    const PositionSet keys{{static_cast<std::int64_t>(first), 150}};
    const StoredTensor k = operands.k.rows_at(keys);
    const StoredTensor v = operands.v.rows_at(keys);
    const AttentionMask mask = setup.mask();
    // Values that no arithmetic would reproduce.
    const auto pattern = std::bit_cast<float>(0x7FC01234U);
    std::vector<float> out(operands.dout.values.size(), pattern);
    std::vector<float> max(400, 1.0F / 3.0F);
    std::vector<float> sum(400, 1.0F / 7.0F);
    for (std::size_t seen = 2 * first; seen < max.size(); ++seen) {
      max[seen] = -infinity;
      sum[seen] = 0.0F;
    }
    make_cpu_attention_kernel(2)->forward_block({&mask, setup.heads, setup.softmax_scale()},
                                                {operands.q.view(), queries}, {k.view(), v.view(), keys},
                                                {out.data(), max.data(), sum.data()});
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::size_t row = i / 32;
      ASSERT_EQ(std::bit_cast<std::uint32_t>(out[i]) == 0x7FC01234U, row < first) << "row " << row;
      ASSERT_EQ(std::isnan(out[i]), row < first) << "row " << row;
    }
    for (std::size_t i = 0; i < max.size(); ++i) {
      ASSERT_EQ(max[i] == 1.0F / 3.0F, i / 2 < first) << "row " << i / 2;
      ASSERT_EQ(sum[i] == 1.0F / 7.0F, i / 2 < first) << "row " << i / 2;
    }
  }
}

TEST(CpuAttentionBits, BlocksWithoutRowsChangeNothing) {
  const AttentionCase setup{.doc_lengths = {64}};
  const Operands operands = random_operands(setup, 5);
  const AttentionMask mask = setup.mask();
  const BlockRule rule{&mask, setup.heads, setup.softmax_scale()};
  const PositionSet all{{0, 64}};
  std::vector<float> out(operands.dout.values.size(), 0.25F);
  std::vector<float> lse(128, -infinity);
  std::vector<float> sum(128, 0.0F);
  const auto kernel = make_cpu_attention_kernel(1);
  const ConstTensorView no_rows{nullptr, DataType::fp32, 0, 2, 16};
  kernel->forward_block(rule, {operands.q.view(), all}, {no_rows, no_rows, {}},
                        {out.data(), lse.data(), sum.data()});
  kernel->forward_block(rule, {no_rows, {}}, {operands.k.view(), operands.v.view(), all},
                        {nullptr, nullptr, nullptr});
  EXPECT_THAT(out, ::testing::Each(0.25F));
  EXPECT_THAT(lse, ::testing::Each(-infinity));
  kernel->backward_block(rule,
                         {{operands.q.view(), all}, operands.dout.view(), lse.data(), lse.data(), out.data()},
                         {no_rows, no_rows, {}}, {nullptr, nullptr});
  kernel->backward_block(rule, {{no_rows, {}}, no_rows, nullptr, nullptr, nullptr},
                         {operands.k.view(), operands.v.view(), all}, {out.data(), out.data()});
  EXPECT_THAT(out, ::testing::Each(0.25F));
}

TEST(CpuAttentionRange, EqualScoresOfAnySizeAverageTheValues) {
  // q . k = score for every key, exactly: one component is 1 times score.
  for (const float score : {-1e5F, 0.0F, 1e5F}) {
    AttentionCase setup{.doc_lengths = {150}, .heads_q = 1, .heads_kv = 1, .dim_qk = 8, .dim_v = 8};
    Operands operands = random_operands(setup, 5);
    const auto set = [](StoredTensor& tensor, float value) {
      for (std::size_t i = 0; i < tensor.values.size(); ++i) {
        tensor.values[i] = i % 8 == 0 ? value : 0.0F;
      }
      round_to(tensor.type, tensor.values.data(), tensor.bytes.data(), tensor.values.size());
    };
    set(operands.q, score / setup.softmax_scale());
    set(operands.k, 1.0F);
    const AttentionRun run = run_attention(*make_cpu_attention_kernel(1), setup, operands, zigzag(setup, 3));
    const DenseAttention reference = dense_attention(setup, operands);
    // lse itself has only the digits that fp32 leaves at this size, and P = exp(s - lse) inherits them.
    EXPECT_LE(relative_error(run.lse, reference.lse), 1e-6) << score;
    EXPECT_LE(relative_error(run.out, reference.out), score == 0.0F ? 1e-6 : 1e-2) << score;
    EXPECT_LE(relative_error(run.dv, reference.dv), score == 0.0F ? 1e-6 : 2e-2) << score;
  }
}

TEST(CpuAttentionRange, ScoresFarApartPickTheLargest) {
  const AttentionCase setup{.doc_lengths = {120}, .causal = true, .q_magnitude = 1e5F};
  const Operands operands = random_operands(setup, 9);
  const AttentionRun run = run_attention(*make_cpu_attention_kernel(2), setup, operands, zigzag(setup, 2));
  const DenseAttention reference = dense_attention(setup, operands);
  EXPECT_LE(relative_error(run.lse, reference.lse), 1e-6);
  EXPECT_LE(relative_error(run.out, reference.out), 1e-2);
}

TEST(CpuAttentionRange, RowsWithoutAnyKeyContributeNothingBackward) {
  const AttentionCase setup{.doc_lengths = {100}};
  const Operands operands = random_operands(setup, 5);
  const AttentionMask mask = setup.mask();
  const PositionSet all{{0, 100}};
  const std::vector<float> lse(200, -infinity);
  const std::vector<float> delta(200, 1.0F);
  std::vector<float> dq(operands.q.values.size(), 0.5F);
  std::vector<float> dk(operands.k.values.size(), 0.5F);
  std::vector<float> dv(operands.v.values.size(), 0.5F);
  make_cpu_attention_kernel(1)->backward_block(
      {&mask, setup.heads, setup.softmax_scale()},
      {{operands.q.view(), all}, operands.dout.view(), lse.data(), delta.data(), dq.data()},
      {operands.k.view(), operands.v.view(), all}, {dk.data(), dv.data()});
  EXPECT_THAT(dq, ::testing::Each(0.5F));
  EXPECT_THAT(dk, ::testing::Each(0.5F));
  EXPECT_THAT(dv, ::testing::Each(0.5F));
}

TEST(CpuAttentionMisuse, EveryDisagreementIsRefused) {
  expect_refusals(*make_cpu_attention_kernel(1));
}

TEST(CpuAttentionMisuse, AValidCallPasses) {
  expect_valid_call_passes(*make_cpu_attention_kernel(1));
}

TEST(CpuAttentionMisuse, AKernelNeedsAThread) {
  EXPECT_THROW(static_cast<void>(make_cpu_attention_kernel(0)), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(measured_peak_flops(DataType::fp32, 0)), std::invalid_argument);
}

TEST(MeasuredPeak, IsARateOfThisProcessor) {
  const double fp32 = measured_peak_flops(DataType::fp32, 1);
  EXPECT_GT(fp32, 1e9);
  EXPECT_LT(fp32, 1e12);
  const double bf16 = measured_peak_flops(DataType::bf16, 1);
  EXPECT_GT(bf16, 0.5 * fp32);
  EXPECT_LT(bf16, 2.5 * fp32);  // a dot product does twice what a multiply-add does
}

}  // namespace
}  // namespace hcp::test
