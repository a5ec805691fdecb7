#include "tests/kernels/cuda/attention_checks.hpp"

#include <gtest/gtest.h>

namespace hcp::test {

double out_tolerance(DataType type) {
  return type == DataType::bf16 ? 2e-3 : type == DataType::fp16 ? 2.5e-4 : fp32_tolerance;
}

double gradient_tolerance(DataType type) {
  return type == DataType::bf16 ? 4e-3 : type == DataType::fp16 ? 5e-4 : fp32_tolerance;
}

void expect_exact(AttentionKernel& kernel, const SoftmaxCase& setup, const BlockSplit& split) {
  const Operands operands = random_operands(setup.attention, 7);
  const DenseSoftmax reference = dense_softmax(setup, operands);
  const SoftmaxRun run = run_softmax(kernel, setup, operands, split);
  const DataType type = setup.attention.type;
  EXPECT_LE(relative_error(run.attention.out, reference.attention.out), out_tolerance(type));
  EXPECT_LE(relative_error(run.attention.lse, reference.attention.lse), fp32_tolerance);
  EXPECT_LE(relative_error(run.max_logits, reference.max_logits), fp32_tolerance);
  EXPECT_LE(relative_error(run.attention.dq, reference.attention.dq), gradient_tolerance(type));
  EXPECT_LE(relative_error(run.attention.dk, reference.attention.dk), gradient_tolerance(type));
  EXPECT_LE(relative_error(run.attention.dv, reference.attention.dv), gradient_tolerance(type));
  EXPECT_LE(relative_error(run.dsinks, reference.dsinks), gradient_tolerance(type));
}

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

}  // namespace hcp::test
