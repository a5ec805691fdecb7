/// Kernels of devices against attention by its definition, forward and backward.
#pragma once

#include <vector>

#include "kernels/attention_kernel.hpp"
#include "tests/kernels/softmax_case.hpp"

namespace hcp::test {

/// In the norm, of what is fp32 all the way.
inline constexpr double fp32_tolerance = 2e-6;
/// In the norm. P is rounded to the storage type of two bytes, half a unit in its last place at most; all
/// else is fp32.
[[nodiscard]] double out_tolerance(DataType type);
/// In the norm. P and dS are rounded to the storage type of two bytes.
[[nodiscard]] double gradient_tolerance(DataType type);

/// out, lse, the largest logits, dq, dk, dv and the gradients of the sinks.
void expect_exact(AttentionKernel& kernel, const SoftmaxCase& setup, const BlockSplit& split);

/// Whole, zigzag, in short ranges, and in combs whose rows are not neighbours.
[[nodiscard]] std::vector<BlockSplit> splits_of(const AttentionCase& setup);

}  // namespace hcp::test
