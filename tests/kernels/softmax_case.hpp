/// Runs of kernels with dropout and sinks, to hold against their definition.
#pragma once

#include <vector>

#include "kernels/attention_kernel.hpp"
#include "tests/kernels/attention_run.hpp"
#include "tests/kernels/dense_softmax.hpp"

namespace hcp::test {

struct SoftmaxRun {
  AttentionRun attention;
  std::vector<float> dsinks;      ///< [heads_q]; empty without sinks
  std::vector<float> max_logits;  ///< [heads_q]
  friend bool operator==(const SoftmaxRun&, const SoftmaxRun&) = default;
};

/// As run_attention; sums the sink gradients of the sets of queries, and takes the largest of their logits.
[[nodiscard]] SoftmaxRun run_softmax(AttentionKernel& kernel, const SoftmaxCase& setup,
                                     const Operands& operands, const BlockSplit& split);

/// relative_error of each result.
void expect_close(const SoftmaxRun& run, const DenseSoftmax& reference, double tolerance);

}  // namespace hcp::test
