/// Runs a kernel over blocks of queries and keys, as the ranks of a context-parallel group would.
#pragma once

#include <vector>

#include "kernels/attention_kernel.hpp"
#include "tests/kernels/dense_attention.hpp"

namespace hcp::test {

/// Position sets that cover the tokens: every set of queries meets the sets of keys in the order given.
struct BlockSplit {
  std::vector<PositionSet> queries;
  std::vector<PositionSet> keys;
};

/// One block each.
[[nodiscard]] BlockSplit whole(const AttentionCase& setup);

/// Queries and keys in `cp_size` zigzag chunk pairs (r and 2 cp_size - 1 - r), by plain division.
[[nodiscard]] BlockSplit zigzag(const AttentionCase& setup, std::int64_t cp_size);

/// Consecutive ranges of the given lengths, repeated until the tokens are used up.
[[nodiscard]] std::vector<PositionSet> ranges_of_lengths(std::int64_t tokens,
                                                         const std::vector<std::int64_t>& lengths);

/// Results in the layouts of DenseAttention.
struct AttentionRun {
  std::vector<float> out, lse, dq, dk, dv;
  friend bool operator==(const AttentionRun&, const AttentionRun&) = default;
};

/// Forward over all blocks, delta from the out and lse of that, then backward.
[[nodiscard]] AttentionRun run_attention(AttentionKernel& kernel, const AttentionCase& setup,
                                         const Operands& operands, const BlockSplit& split);

/// Largest relative_error of the five results.
[[nodiscard]] double worst_error(const AttentionRun& run, const DenseAttention& reference);

}  // namespace hcp::test
