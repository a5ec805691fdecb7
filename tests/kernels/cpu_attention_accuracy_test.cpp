/// How exact the host kernel is where scores are large or a few channels dominate.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "kernels/attention_kernel.hpp"
#include "kernels/data_type.hpp"
#include "tests/kernels/attention_run.hpp"
#include "tests/kernels/cpu_isas.hpp"
#include "tests/kernels/dense_attention.hpp"

namespace hcp::test {
namespace {

void store(StoredTensor& tensor) {
  round_to(tensor.type, tensor.values.data(), tensor.bytes.data(), tensor.values.size());
  widen(tensor.type, tensor.bytes.data(), tensor.values.data(), tensor.values.size());
}

double largest_score(const AttentionCase& setup, const Operands& operands) {
  double largest = 0.0;
  for (std::int64_t query = 0; query < operands.q.rows; ++query) {
    for (std::int64_t key = 0; key < operands.k.rows; ++key) {
      for (std::int64_t head = 0; head < setup.heads_q; ++head) {
        double score = 0.0;
        for (std::int64_t i = 0; i < setup.dim_qk; ++i) {
          const auto q = static_cast<std::size_t>((query * setup.heads_q + head) * setup.dim_qk + i);
          const auto k = static_cast<std::size_t>((key * setup.heads_kv + head) * setup.dim_qk + i);
          score += static_cast<double>(operands.q.values[q]) * static_cast<double>(operands.k.values[k]);
        }
        largest = std::max(largest, std::abs(score) * static_cast<double>(setup.softmax_scale()));
      }
    }
  }
  return largest;
}

/// Scales q so that scores reach from -largest to largest.
void scale_scores(const AttentionCase& setup, Operands& operands, double largest) {
  const auto factor = static_cast<float>(largest / largest_score(setup, operands));
  for (float& value : operands.q.values) {
    value *= factor;
  }
  store(operands.q);
}

/// Error of out, and the largest of all results, over every instruction set.
struct WorstErrors {
  double out = 0.0;
  double all = 0.0;
};

WorstErrors worst_errors(const AttentionCase& setup, const Operands& operands) {
  const DenseAttention reference = dense_attention(setup, operands);
  WorstErrors worst;
  for (const std::string& isa : available_isas()) {
    const SelectedIsa selected{isa};
    const AttentionRun run = run_attention(*make_cpu_attention_kernel(1), setup, operands, whole(setup));
    worst.out = std::max(worst.out, relative_error(run.out, reference.out));
    worst.all = std::max(worst.all, worst_error(run, reference));
  }
  std::printf("out %.1e, all results %.1e\n", worst.out, worst.all);
  return worst;
}

constexpr std::int64_t dim = 128;

AttentionCase large_case(bool causal) {
  return {.doc_lengths = {500}, .causal = causal, .dim_qk = dim, .dim_v = dim};
}

TEST(CpuAttentionAccuracy, ForwardErrorGrowsLittleWithTheScores) {
  for (const bool causal : {false, true}) {
    const AttentionCase setup = large_case(causal);
    Operands operands = random_operands(setup, 11);
    scale_scores(setup, operands, 5.0);
    EXPECT_LE(worst_errors(setup, operands).out, 1e-6);
    scale_scores(setup, operands, 100.0);
    EXPECT_LE(worst_errors(setup, operands).out, 4e-6);
  }
}

/// Some channels of every key are huge, as in trained models, and the first key draws most of the attention
/// while its value is small.
TEST(CpuAttentionAccuracy, HugeChannelsAndASinkKeepTheTolerance) {
  const AttentionCase setup = large_case(true);
  Operands operands = random_operands(setup, 12);
  for (std::int64_t row = 0; row < operands.k.rows; ++row) {
    for (std::int64_t head = 0; head < setup.heads_kv; ++head) {
      const auto at = static_cast<std::size_t>((row * setup.heads_kv + head) * dim);
      for (const std::size_t channel : {3U, 77U}) {
        operands.k.values[at + channel] = 60.0F;
      }
      operands.k.values[at + 100] = row == 0 ? 60.0F : 0.0F;
      operands.q.values[at + 100] = 1.5F;
      if (row == 0) {
        std::fill_n(operands.v.values.begin() + static_cast<std::ptrdiff_t>(at), dim, 0.01F);
      }
    }
  }
  store(operands.k);
  store(operands.q);
  store(operands.v);
  EXPECT_NEAR(largest_score(setup, operands), 40.0, 20.0);
  EXPECT_LE(worst_errors(setup, operands).all, 4e-6);  // as for any scores of this size
}

}  // namespace
}  // namespace hcp::test
