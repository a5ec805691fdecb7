/// The kernels of the forward pass, compiled for the host, against attention by its definition: masks, heads,
/// tails, head dims, types, blocks of keys, dropout.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/cuda/forward_kernels.hpp"
#include "tests/kernels/cuda/simt_forward_kernel.hpp"
#include "tests/kernels/softmax_case.hpp"

namespace hcp::test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Of out, in the norm. P is rounded to the storage type of two bytes, half a unit in its last place at most;
/// all else is fp32.
double tolerance_of(DataType type) {
  return type == DataType::bf16 ? 2e-3 : type == DataType::fp16 ? 2.5e-4 : 2e-6;
}
constexpr double fp32_tolerance = 2e-6;

void expect_exact(const SoftmaxCase& setup, const BlockSplit& split,
                  simt::Order order = simt::Order::warp_wise) {
  const Operands operands = random_operands(setup.attention, 7);
  const DenseSoftmax reference = dense_softmax(setup, operands);
  const SoftmaxRun run = run_softmax(*make_simt_forward_kernel(order), setup, operands, split);
  EXPECT_LE(relative_error(run.attention.out, reference.attention.out), tolerance_of(setup.attention.type));
  EXPECT_LE(relative_error(run.attention.lse, reference.attention.lse), fp32_tolerance);
  EXPECT_LE(relative_error(run.max_logits, reference.max_logits), fp32_tolerance);
}

void expect_exact(const AttentionCase& attention, const BlockSplit& split) {
  expect_exact(SoftmaxCase{.attention = attention}, split);
}
void expect_exact(const AttentionCase& attention) {
  expect_exact(attention, whole(attention));
}

class SimtForward : public testing::TestWithParam<DataType> {};
INSTANTIATE_TEST_SUITE_P(Types, SimtForward, testing::Values(DataType::fp32, DataType::bf16, DataType::fp16),
                         [](const auto& info) { return std::string{name_of(info.param)}; });

TEST_P(SimtForward, EveryMask) {
  std::mt19937 random{5};
  for (const MaskKind kind : all_mask_kinds) {
    SCOPED_TRACE(name_of(kind));
    AttentionCase attention{.dim_qk = 16, .dim_v = 16, .type = GetParam()};
    attention.any_mask = random_definition(kind, random, 4, 130);
    SCOPED_TRACE(text_of(*attention.any_mask));
    expect_exact(attention);
  }
}

/// With gaps within tiles and across their borders.
TEST_P(SimtForward, TwoIntervalsOfKeys) {
  MaskDefinition definition{.kind = MaskKind::intervals, .doc_lengths = {150}};
  for (std::int64_t query = 0; query < 150; ++query) {
    const std::int64_t gap = 5 + query % 70;
    definition.intervals.insert(definition.intervals.end(),
                                {query % 7, gap, gap + 1 + query % 3, std::min<std::int64_t>(150, gap + 66)});
  }
  AttentionCase attention{.heads_q = 1, .heads_kv = 1, .type = GetParam()};
  attention.any_mask = definition;
  expect_exact(attention);
  expect_exact(attention, zigzag(attention, 2));
}

TEST_P(SimtForward, FullVisitsBesidePartialOnes) {
  expect_exact({.doc_lengths = {330}, .causal = true, .heads_q = 1, .heads_kv = 1, .type = GetParam()});
}

TEST_P(SimtForward, FullVisitsGiveTheSameBitsMasked) {
  const SoftmaxCase setup{
      .attention = {.doc_lengths = {330}, .causal = true, .heads_q = 1, .heads_kv = 1, .type = GetParam()}};
  const Operands operands = random_operands(setup.attention, 3);
  const auto run_with = [&](FullVisits full_visits) {
    return run_softmax(*make_simt_forward_kernel(simt::Order::warp_wise, full_visits), setup, operands,
                       whole(setup.attention));
  };
  EXPECT_EQ(run_with(FullVisits::masked), run_with(FullVisits::as_they_are));
}

TEST_P(SimtForward, LengthsAroundATile) {
  for (const std::int64_t length : {1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 193}) {
    SCOPED_TRACE(length);
    expect_exact({.doc_lengths = {length}, .heads_q = 1, .heads_kv = 1, .type = GetParam()});
  }
}

TEST_P(SimtForward, HeadDims) {
  struct Dims {
    std::int64_t qk;
    std::int64_t v;
  };
  for (const Dims dims : {Dims{8, 8}, Dims{64, 64}, Dims{72, 40}, Dims{40, 72}, Dims{128, 128}, Dims{136, 8},
                          Dims{192, 128}, Dims{8, 136}, Dims{200, 64}, Dims{256, 256}}) {
    SCOPED_TRACE(std::to_string(dims.qk) + " / " + std::to_string(dims.v));
    expect_exact({.doc_lengths = {70, 65},
                  .causal = true,
                  .heads_q = 1,
                  .heads_kv = 1,
                  .dim_qk = dims.qk,
                  .dim_v = dims.v,
                  .type = GetParam()});
  }
}

TEST_P(SimtForward, HeadsOfAnyRank) {
  for (const HeadMap heads : {HeadMap{0, 0, 4}, HeadMap{5, 1, 4}, HeadMap{7, 1, 4}}) {
    SCOPED_TRACE(heads.first_query_head);
    expect_exact({.doc_lengths = {70},
                  .causal = true,
                  .heads_q = 5,
                  .heads_kv = 3,
                  .heads = heads,
                  .dim_qk = 24,
                  .type = GetParam()});
  }
}

/// Whole, zigzag, in short ranges, and in combs whose rows are not neighbours.
std::vector<BlockSplit> splits_of(const AttentionCase& setup) {
  const auto comb_of = [](std::int64_t tokens, const std::vector<std::int64_t>& lengths) {
    std::vector<PositionSet> combs(2);
    std::size_t i = 0;
    for (const PositionSet& range : ranges_of_lengths(tokens, lengths)) {
      combs[i++ % 2].push_back(range.front());
    }
    return combs;
  };
  return {whole(setup),
          zigzag(setup, 2),
          {ranges_of_lengths(setup.tokens(), {101, 1, 31}), ranges_of_lengths(setup.key_tokens(), {70, 7})},
          {comb_of(setup.tokens(), {1, 9, 40}), comb_of(setup.key_tokens(), {3, 66, 5, 2})}};
}

TEST_P(SimtForward, BlocksOfKeysOneAfterAnother) {
  for (const bool causal : {false, true}) {
    const AttentionCase attention{
        .doc_lengths = {150, 61}, .causal = causal, .heads_q = 1, .heads_kv = 1, .type = GetParam()};
    for (const BlockSplit& split : splits_of(attention)) {
      expect_exact(attention, split);
    }
  }
}

TEST_P(SimtForward, EveryOrderOfThreadsGivesTheSameBits) {
  for (const double dropout : {0.0, 0.3}) {
    const SoftmaxCase setup{
        .attention = {.doc_lengths = {200}, .causal = true, .heads_q = 1, .heads_kv = 1, .type = GetParam()},
        .dropout = dropout};
    const Operands operands = random_operands(setup.attention, 3);
    const auto run_in = [&](simt::Order order) {
      return run_softmax(*make_simt_forward_kernel(order), setup, operands, zigzag(setup.attention, 2));
    };
    const SoftmaxRun first = run_in(simt::Order::warp_wise);
    for (const simt::Order order : simt::all_orders) {
      EXPECT_EQ(run_in(order), first) << static_cast<int>(order);
    }
    expect_exact(setup, zigzag(setup.attention, 2), simt::Order::random);
  }
}

TEST_P(SimtForward, Dropout) {
  const SoftmaxCase setup{.attention = {.doc_lengths = {90, 0, 37, 90, 0, 37},
                                        .causal = true,
                                        .heads_q = 3,
                                        .heads_kv = 2,
                                        .heads = {5, 1, 4},
                                        .type = GetParam()},
                          .documents_per_row = 3,
                          .dropout = 0.4,
                          .seed = 0xfedc'ba98'7654'3210,
                          .layer = 3,
                          .first_head = 28};
  for (const BlockSplit& split : splits_of(setup.attention)) {
    expect_exact(setup, split);
  }
}

TEST_P(SimtForward, DropoutOfEveryHeadDimTile) {
  for (const std::int64_t dim : {128, 192, 256}) {
    SCOPED_TRACE(dim);
    expect_exact(SoftmaxCase{.attention = {.doc_lengths = {140},
                                           .heads_q = 1,
                                           .heads_kv = 1,
                                           .dim_qk = dim,
                                           .dim_v = dim == 192 ? 128 : dim,
                                           .type = GetParam()},
                             .dropout = 0.25},
                 {{{{0, 140}}}, {{{0, 33}, {40, 107}}, {{33, 40}, {107, 140}}}});
  }
}

/// With scores of 0 and values that are unit vectors, out is what is left of P.
TEST_P(SimtForward, TheElementsThatDropAreThoseOfTheDefinition) {
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
  const std::vector<bool> dropped = dropped_by(*make_simt_forward_kernel());
  EXPECT_EQ(dropped, dropped_by(*make_reference_attention_kernel()));
  EXPECT_NEAR(static_cast<double>(std::ranges::count(dropped, true)), 10000.0, 400.0);
}

/// Keys lie after the queries: most rows see nothing, and keep what they had.
TEST_P(SimtForward, RowsThatSeeNothingKeepTheirBits) {
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
  make_simt_forward_kernel()->forward_block({&mask, setup.heads, setup.softmax_scale()}, {q.view(), queries},
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

TEST_P(SimtForward, NanReachesTheRowsThatSeeItAndNoOthers) {
  const SoftmaxCase setup{
      .attention = {.doc_lengths = {100}, .causal = true, .heads_q = 1, .heads_kv = 1, .type = GetParam()}};
  Operands operands = random_operands(setup.attention, 2);
  std::fill_n(operands.k.values.begin() + 70 * 16, 16, std::numeric_limits<float>::quiet_NaN());
  round_to(operands.k.type, operands.k.values.data(), operands.k.bytes.data(), operands.k.values.size());
  const SoftmaxRun run = run_softmax(*make_simt_forward_kernel(), setup, operands, whole(setup.attention));
  for (std::size_t row = 0; row < 100; ++row) {
    EXPECT_EQ(std::isnan(run.attention.out[16 * row]), row >= 70) << row;
  }
}

/// exp2(s - max) with s of fp32: its error grows with the scores.
TEST(SimtForwardAlone, LargeScoresOfFp32) {
  AttentionCase setup{
      .doc_lengths = {200}, .causal = true, .heads_q = 1, .heads_kv = 1, .dim_qk = 128, .dim_v = 64};
  for (const float magnitude : {1.0F, 5.0F, 25.0F}) {
    setup.q_magnitude = magnitude;
    const Operands operands = random_operands(setup, 11);
    const DenseSoftmax reference = dense_softmax({.attention = setup}, operands);
    const SoftmaxRun run =
        run_softmax(*make_simt_forward_kernel(), {.attention = setup}, operands, whole(setup));
    const double error = relative_error(run.attention.out, reference.attention.out);
    std::printf("largest score %.0f: error of out %.1e\n", reference.max_logits.values[0], error);
    EXPECT_LE(error, magnitude > 10.0F ? 4e-6 : 2e-6);  // as the host kernel
  }
}

TEST_P(SimtForward, ASoftmaxScaleOfZeroIsAMean) {
  const AttentionCase setup{
      .doc_lengths = {70}, .causal = true, .heads_q = 1, .heads_kv = 1, .type = GetParam()};
  Operands operands = random_operands(setup, 2);
  const AttentionMask mask = setup.mask();
  std::vector<float> out(70 * 16);
  std::vector<float> max(70, -infinity);
  std::vector<float> sum(70);
  const PositionSet all{{0, 70}};
  make_simt_forward_kernel()->forward_block({&mask, setup.heads, 0.0F}, {operands.q.view(), all},
                                            {operands.k.view(), operands.v.view(), all},
                                            {out.data(), max.data(), sum.data()});
  for (std::size_t row = 0; row < 70; ++row) {
    EXPECT_EQ(sum[row], static_cast<float>(row + 1));
    EXPECT_NEAR(max[row], 0.0F, 1e-30F);
  }
}

TEST(SimtForwardAlone, HeadDimsThatNoKernelTakesAreRefused) {
  for (const std::int32_t dim : {0, 4, 12, 264}) {
    EXPECT_THROW((void)cuda::forward_kernel_entry(DataType::bf16, dim, 64, false), std::invalid_argument);
    EXPECT_THROW((void)cuda::forward_kernel_entry(DataType::fp32, 64, dim, false), std::invalid_argument);
  }
}

}  // namespace
}  // namespace hcp::test
