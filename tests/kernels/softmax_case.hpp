/// Attention with dropout and sinks by its definition, for tests, and runs of kernels to hold against it.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/attention_kernel.hpp"
#include "tests/kernels/attention_run.hpp"
#include "tests/kernels/dense_attention.hpp"

namespace hcp::test {

struct SoftmaxCase {
  AttentionCase attention{};  ///< its documents are those of all rows of the micro-batch
  std::int64_t documents_per_row = 1;
  double dropout = 0.0;
  std::uint64_t seed = 42;
  std::int64_t layer = 0;
  std::int64_t first_head = 0;    ///< as Dropout::first_head
  std::vector<float> sinks = {};  ///< [heads_q]; empty: none
};

struct SoftmaxRun {
  AttentionRun attention;
  std::vector<float> dsinks;      ///< [heads_q]; empty without sinks
  std::vector<float> max_logits;  ///< [heads_q]
  friend bool operator==(const SoftmaxRun&, const SoftmaxRun&) = default;
};

/// As run_attention; sums the sink gradients of the sets of queries, and takes the largest of their logits.
[[nodiscard]] SoftmaxRun run_softmax(AttentionKernel& kernel, const SoftmaxCase& setup,
                                     const Operands& operands, const BlockSplit& split);

struct DenseSoftmax {
  DenseAttention attention;
  DenseResult dsinks;
  DenseResult max_logits;
};

/// Every score, probability and dropped element on its own, in fp64.
[[nodiscard]] DenseSoftmax dense_softmax(const SoftmaxCase& setup, const Operands& operands);

/// relative_error of each result.
void expect_close(const SoftmaxRun& run, const DenseSoftmax& reference, double tolerance);

}  // namespace hcp::test
