/// Attention with dropout and sinks by its definition, for tests.
#pragma once

#include <cstdint>
#include <vector>

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

struct DenseSoftmax {
  DenseAttention attention;
  DenseResult dsinks;
  DenseResult max_logits;
};

/// Every score, probability and dropped element on its own, in fp64.
[[nodiscard]] DenseSoftmax dense_softmax(const SoftmaxCase& setup, const Operands& operands);

}  // namespace hcp::test
