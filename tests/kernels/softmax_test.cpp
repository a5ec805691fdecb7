/// Dropout, sinks and the largest logits: host kernel and reference kernel against the definition.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/attention_kernel.hpp"
#include "tests/kernels/cpu_isas.hpp"
#include "tests/kernels/softmax_case.hpp"

namespace hcp::test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Calls work(kernel, tolerance) for the host kernel with every instruction set and the reference kernel.
void for_kernels(DataType type, const std::function<void(AttentionKernel&, double)>& work) {
  for (const std::string& isa : available_isas()) {
    SCOPED_TRACE(isa);
    const SelectedIsa selected{isa};
    work(*make_cpu_attention_kernel(2), kernel_tolerance(isa, type));
  }
  SCOPED_TRACE("reference");
  work(*make_reference_attention_kernel(), 2e-6);
}

void expect_exact(const SoftmaxCase& setup, const std::vector<BlockSplit>& splits) {
  const Operands operands = random_operands(setup.attention, 11);
  const DenseSoftmax reference = dense_softmax(setup, operands);
  for_kernels(setup.attention.type, [&](AttentionKernel& kernel, double tolerance) {
    for (std::size_t i = 0; i < splits.size(); ++i) {
      SCOPED_TRACE("split " + std::to_string(i));
      expect_close(run_softmax(kernel, setup, operands, splits[i]), reference, tolerance);
    }
  });
}

/// Whole, zigzag, in short ranges, and in combs whose rows are not neighbours.
std::vector<BlockSplit> splits_of(const AttentionCase& setup) {
  const auto comb_of = [](std::int64_t tokens, const std::vector<std::int64_t>& lengths) {
    std::vector<PositionSet> combs(3);
    std::size_t i = 0;
    for (const PositionSet& range : ranges_of_lengths(tokens, lengths)) {
      combs[i++ % 3].push_back(range.front());
    }
    std::erase_if(combs, [](const PositionSet& comb) { return comb.empty(); });
    return combs;
  };
  const std::int64_t queries = setup.tokens();
  const std::int64_t keys = setup.key_tokens();
  return {whole(setup),
          zigzag(setup, 3),
          {ranges_of_lengths(queries, {101, 1, 31}), ranges_of_lengths(keys, {70, 7, 65, 3})},
          {comb_of(queries, {1, 9, 4}), comb_of(keys, {1, 66, 5, 2})}};
}

TEST(Dropout, AgreesWithTheDefinition) {
  for (const bool causal : {false, true}) {
    const SoftmaxCase setup{
        .attention = {.doc_lengths = {200, 1, 0, 99}, .causal = causal, .dim_qk = 24, .dim_v = 40},
        .dropout = 0.15};
    expect_exact(setup, splits_of(setup.attention));
  }
}

TEST(Dropout, OfSeveralRowsHeadsAndLayers) {
  const SoftmaxCase setup{.attention = {.doc_lengths = {90, 0, 37, 90, 0, 37},
                                        .causal = true,
                                        .heads_q = 5,
                                        .heads_kv = 2,
                                        .heads = {5, 1, 4}},
                          .documents_per_row = 3,
                          .dropout = 0.5,
                          .seed = 0xfedc'ba98'7654'3210,
                          .layer = 3,
                          .first_head = 28};
  expect_exact(setup, splits_of(setup.attention));
}

TEST(Dropout, OfOtherKeysThanQueries) {
  AttentionCase attention{.dim_qk = 16, .dim_v = 16};
  attention.any_mask = MaskDefinition{.kind = MaskKind::causal_bottom_right,
                                      .doc_lengths = {50, 0, 130, 12},
                                      .kv_doc_lengths = {220, 5, 90, 77}};
  expect_exact({.attention = attention, .documents_per_row = 2, .dropout = 0.3}, splits_of(attention));
}

TEST(Dropout, OfManyKeys) {
  const SoftmaxCase setup{
      .attention = {.doc_lengths = {900}, .heads_q = 1, .heads_kv = 1, .dim_qk = 16, .dim_v = 16},
      .dropout = 0.1};
  expect_exact(setup, {whole(setup.attention), zigzag(setup.attention, 2)});
}

TEST(Dropout, OfEveryStorageType) {
  for (const DataType type : {DataType::bf16, DataType::fp16}) {
    const SoftmaxCase setup{
        .attention = {.doc_lengths = {131, 98}, .causal = true, .dim_qk = 32, .dim_v = 32, .type = type},
        .dropout = 0.2};
    expect_exact(setup, splits_of(setup.attention));
  }
}

/// What is left of P where every score is 0 and the values are unit vectors: out[row, head, key].
std::vector<float> kept_elements(AttentionKernel& kernel, const SoftmaxCase& setup, const BlockSplit& split) {
  Operands operands = random_operands(setup.attention, 1);
  const auto set = [](StoredTensor& tensor, const std::function<float(std::int64_t, std::int64_t)>& value) {
    for (std::int64_t row = 0; row < tensor.rows; ++row) {
      for (std::int64_t i = 0; i < tensor.heads * tensor.dim; ++i) {
        tensor.values[static_cast<std::size_t>(row * tensor.heads * tensor.dim + i)] =
            value(row, i % tensor.dim);
      }
    }
    round_to(tensor.type, tensor.values.data(), tensor.bytes.data(), tensor.values.size());
  };
  set(operands.q, [](std::int64_t, std::int64_t) { return 0.0F; });
  set(operands.v, [](std::int64_t row, std::int64_t channel) { return row == channel ? 1.0F : 0.0F; });
  return run_softmax(kernel, setup, operands, split).attention.out;
}

TEST(Dropout, TheSameElementsDropInEveryKernelAndSplit) {
  const SoftmaxCase setup{
      .attention =
          {.doc_lengths = {200}, .heads_q = 4, .heads_kv = 1, .heads = {0, 0, 4}, .dim_qk = 8, .dim_v = 200},
      .dropout = 0.25};
  const auto dropped = [](const std::vector<float>& out) {
    std::vector<bool> zero;
    std::ranges::transform(out, std::back_inserter(zero), [](float x) { return x == 0.0F; });
    return zero;
  };
  const std::vector<bool> expected =
      dropped(kept_elements(*make_reference_attention_kernel(), setup, whole(setup.attention)));
  const auto count = static_cast<double>(expected.size());
  EXPECT_NEAR(static_cast<double>(std::ranges::count(expected, true)), 0.25 * count,
              4.0 * std::sqrt(0.25 * 0.75 * count));
  for_kernels(DataType::fp32, [&](AttentionKernel& kernel, double) {
    for (const BlockSplit& split : splits_of(setup.attention)) {
      ASSERT_EQ(dropped(kept_elements(kernel, setup, split)), expected);
    }
  });
}

TEST(Dropout, AWrongProbabilityIsRefused) {
  const SoftmaxCase setup{.attention = {.doc_lengths = {8}}, .dropout = 1.0};
  const Operands operands = random_operands(setup.attention, 1);
  for_kernels(DataType::fp32, [&](AttentionKernel& kernel, double) {
    EXPECT_THROW(static_cast<void>(run_softmax(kernel, setup, operands, whole(setup.attention))),
                 std::invalid_argument);
  });
}

TEST(Sinks, AgreeWithTheDefinition) {
  for (const float magnitude : {1.0F, 30.0F}) {
    for (const bool causal : {false, true}) {
      const SoftmaxCase setup{.attention = {.doc_lengths = {70, 1, 0, 37},
                                            .causal = causal,
                                            .heads_q = 6,
                                            .heads_kv = 3,
                                            .heads = {0, 0, 2},
                                            .dim_qk = 24,
                                            .dim_v = 40,
                                            .q_magnitude = magnitude},
                              .sinks = {0.0F, 1.5F, -2.0F, 4.0F, 20.0F, -20.0F}};
      expect_exact(setup, splits_of(setup.attention));
    }
  }
}

TEST(Sinks, OffByOneIsALogitOfZero) {
  const SoftmaxCase setup{.attention = {.doc_lengths = {130}, .causal = true}, .sinks = {0.0F, 0.0F}};
  expect_exact(setup, splits_of(setup.attention));
}

TEST(Sinks, WithDropout) {
  const SoftmaxCase setup{
      .attention = {.doc_lengths = {200, 33}, .causal = true}, .dropout = 0.2, .sinks = {0.7F, -0.4F}};
  expect_exact(setup, splits_of(setup.attention));
}

TEST(Sinks, HugeOnesTakeEverythingAndTinyOnesNothing) {
  const AttentionCase attention{.doc_lengths = {100}, .heads_q = 4, .heads_kv = 4};
  const Operands operands = random_operands(attention, 3);
  const SoftmaxCase plain{.attention = attention};
  const SoftmaxCase setup{.attention = attention, .sinks = {1e4F, -1e4F, 1e38F, -infinity}};
  for_kernels(DataType::fp32, [&](AttentionKernel& kernel, double) {
    const SoftmaxRun run = run_softmax(kernel, setup, operands, whole(attention));
    const SoftmaxRun vanilla = run_softmax(kernel, plain, operands, whole(attention));
    for (std::size_t i = 0; i < run.attention.lse.size(); ++i) {
      const std::size_t head = i % 4;
      const bool takes_all = head % 2 == 0;
      EXPECT_FLOAT_EQ(run.attention.lse[i], takes_all ? setup.sinks[head] : vanilla.attention.lse[i]);
      for (std::size_t c = 16 * i; c < 16 * (i + 1); ++c) {
        ASSERT_EQ(run.attention.out[c], takes_all ? 0.0F : vanilla.attention.out[c]);
        ASSERT_EQ(run.attention.dq[c], takes_all ? 0.0F : vanilla.attention.dq[c]);
      }
    }
    EXPECT_THAT(run.dsinks, testing::Each(0.0F));
    EXPECT_EQ(run.max_logits, vanilla.max_logits);
  });
}

TEST(Sinks, RowsThatSeeNothing) {
  AttentionCase attention{.heads_q = 2, .heads_kv = 2};
  attention.any_mask =
      MaskDefinition{.kind = MaskKind::padding, .doc_lengths = {40, 30}, .special_lengths = {25, 0}};
  const SoftmaxCase setup{.attention = attention, .sinks = {0.5F, -3.25F}};
  expect_exact(setup, splits_of(attention));
  const Operands operands = random_operands(attention, 5);
  for_kernels(DataType::fp32, [&](AttentionKernel& kernel, double) {
    const SoftmaxRun run = run_softmax(kernel, setup, operands, whole(attention));
    for (std::size_t row = 25; row < 70; ++row) {
      for (std::size_t head = 0; head < 2; ++head) {
        EXPECT_FLOAT_EQ(run.attention.lse[row * 2 + head], setup.sinks[head]);
        for (std::size_t c = (row * 2 + head) * 16; c < (row * 2 + head + 1) * 16; ++c) {
          ASSERT_EQ(run.attention.out[c], 0.0F);
          ASSERT_EQ(run.attention.dq[c], 0.0F);
        }
      }
    }
  });
}

TEST(Sinks, GradientIsTheDerivative) {
  SoftmaxCase setup{
      .attention = {.doc_lengths = {60, 20}, .causal = true}, .dropout = 0.1, .sinks = {0.5F, -1.0F}};
  const Operands operands = random_operands(setup.attention, 9);
  const auto loss = [&](const SoftmaxCase& changed) {
    const std::vector<double> out = dense_softmax(changed, operands).attention.out.values;
    return std::transform_reduce(out.begin(), out.end(), operands.dout.values.begin(), 0.0, std::plus{},
                                 [](double o, float d) { return o * static_cast<double>(d); });
  };
  for_kernels(DataType::fp32, [&](AttentionKernel& kernel, double) {
    const SoftmaxRun run = run_softmax(kernel, setup, operands, whole(setup.attention));
    for (std::size_t head = 0; head < 2; ++head) {
      constexpr float step = 0x1p-10F;  // added exactly
      SoftmaxCase up = setup;
      SoftmaxCase down = setup;
      up.sinks[head] += step;
      down.sinks[head] -= step;
      const double derivative = (loss(up) - loss(down)) / (2.0 * step);
      EXPECT_NEAR(run.dsinks[head], derivative, 1e-5 * std::abs(derivative) + 1e-5);
    }
  });
}

TEST(MaxLogits, OfARankThatSeesNothing) {
  for_kernels(DataType::fp32, [](AttentionKernel& kernel, double) {
    std::vector<float> logits(3, 7.0F);
    kernel.max_logits(nullptr, 0, 3, logits.data());
    EXPECT_THAT(logits, testing::Each(-infinity));
    const std::vector<float> max{-infinity, 2.0F, -5.0F, -infinity, 1.0F, -4.0F};
    kernel.max_logits(max.data(), 2, 3, logits.data());
    EXPECT_EQ(logits[0], -infinity);
    EXPECT_FLOAT_EQ(logits[1], 2.0F * std::log(2.0F));
    EXPECT_FLOAT_EQ(logits[2], -4.0F * std::log(2.0F));
  });
}

TEST(Sinks, BitsDoNotDependOnThreads) {
  const SoftmaxCase setup{
      .attention =
          {.doc_lengths = {1100}, .causal = true, .heads_q = 7, .heads_kv = 7, .dim_qk = 8, .dim_v = 72},
      .dropout = 0.1,
      .sinks = {0.0F, 1.0F, 2.0F, -1.0F, -2.0F, 0.5F, 9.0F}};
  const Operands operands = random_operands(setup.attention, 2);
  const SoftmaxRun one = run_softmax(*make_cpu_attention_kernel(1), setup, operands, whole(setup.attention));
  for (const int threads : {2, 3}) {
    EXPECT_EQ(run_softmax(*make_cpu_attention_kernel(threads), setup, operands, whole(setup.attention)), one);
  }
}

}  // namespace
}  // namespace hcp::test
