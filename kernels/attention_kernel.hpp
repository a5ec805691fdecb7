/// The arithmetic of one rank in one memory space: the seam between exact attention over many ranks and what
/// computes it.
///
/// An implementation knows tensors, positions and masks, but no ranks. All calls of one kernel come from one
/// thread; what runs inside a call is the implementation's business, but its bits may not depend on timing or
/// on the number of threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "kernels/attention_mask.hpp"
#include "kernels/dropout.hpp"
#include "kernels/tensor.hpp"

namespace hcp {

/// Which KV head a query head uses (GQA). A rank may hold any run of query heads and the KV heads they use.
struct HeadMap {
  std::int64_t first_query_head = 0;  ///< global index of the rank's query head 0
  std::int64_t first_kv_head = 0;     ///< global index of the rank's KV head 0
  std::int64_t queries_per_kv = 1;    ///< query heads that share one KV head, >= 1

  [[nodiscard]] constexpr std::int64_t kv_head_of(std::int64_t local_query_head) const {
    return (first_query_head + local_query_head) / queries_per_kv - first_kv_head;
  }
};

/// What every block of one layer has in common.
struct BlockRule {
  const AttentionMask* mask = nullptr;
  HeadMap heads;
  float softmax_scale = 1.0F;
  Dropout dropout{};  ///< drops elements of P, after the sum of exponentials
};

/// Rows of queries with their global positions.
struct QueryBlock {
  ConstTensorView q;                         ///< [rows, heads_q, dim_qk], storage type
  std::span<const PositionRange> positions;  ///< of the rows, ascending; sizes sum to rows
};

/// Rows of keys and values with their global positions.
struct KvBlock {
  ConstTensorView k;                         ///< [rows, heads_kv, dim_qk], storage type
  ConstTensorView v;                         ///< [rows, heads_kv, dim_v], storage type
  std::span<const PositionRange> positions;  ///< of the rows, ascending; sizes sum to rows
};

/// Attention over the KV blocks folded in so far, not yet normalised; {0, -inf, 0} before the first. Kept in
/// this form from block to block, so that rounding does not grow with their number: as long as the maximum
/// stays, nothing is scaled.
struct RunningOutput {
  float* out = nullptr;  ///< [rows, heads_q, dim_v], sum of exp2(s - max) v
  float* max = nullptr;  ///< [rows, heads_q], the largest s so far; s = log2(e) softmax_scale q k^T
  float* sum = nullptr;  ///< [rows, heads_q], sum of exp2(s - max)
};

/// What the backward pass knows of a block of queries.
struct GradientBlock {
  QueryBlock query;
  ConstTensorView dout;          ///< [rows, heads_q, dim_v], storage type
  const float* lse = nullptr;    ///< [rows, heads_q], over all keys of the sequence
  const float* delta = nullptr;  ///< [rows, heads_q], rowsum(dout * out) over all of dim_v
  float* dq = nullptr;           ///< [rows, heads_q, dim_qk], added to
};

/// Gradients of a KV block, added to.
struct KvGradient {
  float* dk = nullptr;  ///< [rows, heads_kv, dim_qk]
  float* dv = nullptr;  ///< [rows, heads_kv, dim_v]
};

class AttentionKernel {
 public:
  virtual ~AttentionKernel() = default;
  [[nodiscard]] virtual MemorySpace memory_space() const = 0;

  /// Folds the attention of a block into `running`, where the mask allows. A row that sees no key of the
  /// block keeps its values; -inf merged with -inf is -inf. Dropout multiplies what goes into out,
  /// not the sum.
  /// @throws std::invalid_argument if shapes disagree
  /// @source Dao 2023, arXiv:2307.08691, section 3.1
  virtual void forward_block(const BlockRule& rule, const QueryBlock& query, const KvBlock& kv,
                             const RunningOutput& running) = 0;

  /// logits[head] = the largest softmax_scale q k^T that a row saw, -inf if none saw any. After the last
  /// block and before finish_forward.
  /// @param max  [rows, heads], as RunningOutput::max
  virtual void max_logits(const float* max, std::int64_t rows, std::int64_t heads, float* logits) = 0;

  /// After the last block: divides `running.out` by the sum, so that it is the exact attention, and sets lse
  /// [rows, heads], the natural logarithm of the sum of exponentials. A row that saw nothing gets 0 and -inf.
  /// lse may be running.max; running.max and running.sum are used up.
  /// @param sinks  [heads], not null: a logit per head that is one more key, with the value 0. So lse =
  /// ln(exp (lse) + exp(sink)), and a row that saw nothing gets 0 and the sink; -inf is no sink.
  virtual void finish_forward(const RunningOutput& running, std::int64_t rows, std::int64_t heads,
                              std::int64_t dim_v, float* lse, const float* sinks = nullptr) = 0;

  /// Adds the block's share of dq, dk, dv. P = exp(s - lse) with the lse of the whole sequence, dS = P (dP -
  /// delta). Rows with lse = -inf contribute nothing. Dropout multiplies P in dv, and dP.
  /// @throws std::invalid_argument if shapes disagree
  /// @source Dao 2023, arXiv:2307.08691, section 3.1.2
  virtual void backward_block(const BlockRule& rule, const GradientBlock& gradient, const KvBlock& kv,
                              const KvGradient& kv_gradient) = 0;

  /// dsinks[head] = - sum over the rows of exp(sink - lse) delta, the gradient of the sinks of
  /// finish_forward.
  /// @param lse, delta  [rows, heads], as in GradientBlock
  virtual void sink_gradients(const float* sinks, const float* lse, const float* delta, std::int64_t rows,
                              std::int64_t heads, float* dsinks) = 0;

  /// delta[row, head] = sum over dim of out * dout; both [rows, heads, dim], storage type.
  virtual void row_dot(ConstTensorView out, ConstTensorView dout, float* delta) = 0;

  /// target[r, e] = source[r, e], converting types; r < rows, e < elements.
  virtual void copy_rows(const BasicRowTable<const std::byte>& source, const BasicRowTable<std::byte>& target,
                         std::int64_t rows, std::int64_t elements) = 0;

  /// target[r, e] += source[r, e] in fp32; target.type is fp32.
  virtual void add_rows(const BasicRowTable<const std::byte>& source, const BasicRowTable<std::byte>& target,
                        std::int64_t rows, std::int64_t elements) = 0;

  /// Sets `count` fp32 values.
  virtual void fill(float* target, std::int64_t count, float value) = 0;
};

/// The host kernel with `threads` OpenMP threads.
/// @throws std::invalid_argument if threads < 1
[[nodiscard]] std::unique_ptr<AttentionKernel> make_cpu_attention_kernel(int threads);

/// fp64 arithmetic inside, the same interface outside: the standard attention that the others are held
/// against.
[[nodiscard]] std::unique_ptr<AttentionKernel> make_reference_attention_kernel();

}  // namespace hcp
