/// Standard attention in fp64, the truth that every other result is held against.
///
/// One head at a time, block by block: keys are folded in chunk after chunk, and no more than one small tile
/// of the scores exists. Tiles that the mask empties are not computed. Single-threaded.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/attention_mask.hpp"
#include "kernels/dropout.hpp"
#include "kernels/tensor.hpp"

namespace hcp {

/// What the tokens of one head have in common.
struct ReferenceHead {
  const AttentionMask* mask = nullptr;
  double softmax_scale = 1.0;
  std::int64_t dim_qk = 0;
  std::int64_t dim_v = 0;
  const Dropout* dropout = nullptr;  ///< null: nothing is dropped
  std::int64_t head = 0;             ///< query head, as dropout_stream counts them
};

struct ReferenceQueries {
  std::span<const std::int64_t> positions;  ///< of the rows
  const double* q = nullptr;                ///< [rows, dim_qk]
};

struct ReferenceKeys {
  std::span<const std::int64_t> positions;  ///< of the rows, strictly ascending
  const double* k = nullptr;                ///< [rows, dim_qk]
  const double* v = nullptr;                ///< [rows, dim_v]
};

/// Exact attention over the keys folded in so far; {0, -inf} before the first.
struct ReferenceOutput {
  double* out = nullptr;        ///< [query rows, dim_v], normalised
  double* lse = nullptr;        ///< [query rows], natural logarithm; -inf where nothing was seen
  double* max_logit = nullptr;  ///< [query rows], the largest s, -inf before the first; null if not wanted
};

/// What the gradient needs of a query besides q.
struct ReferenceOutputGradient {
  const double* dout = nullptr;             ///< [query rows, dim_v]
  const double* lse = nullptr;              ///< [query rows], over all keys of the sequence
  const double* delta = nullptr;            ///< [query rows], rowsum(dout * out)
  const double* delta_magnitude = nullptr;  ///< [query rows], |delta| in magnitudes; null: |delta|
};

/// Gradients, added to; nullptr where one is not wanted. The magnitudes are the same sums in absolute values,
/// by which an error is measured where cancellation makes the gradient vanish. |dP| is then at least the L2
/// norm of the terms of dout v^T: rounding errors of the terms add up to that also where they happen to
/// cancel. So should delta_magnitude be.
struct ReferenceGradient {
  double* dq = nullptr;            ///< [query rows, dim_qk]: softmax_scale * sum P (D dP - delta) k
  double* dq_magnitude = nullptr;  ///< [query rows, dim_qk]: softmax_scale * sum P (D |dP| + |delta|) |k|
  double* dk = nullptr;            ///< [key rows, dim_qk]: softmax_scale * sum P (D dP - delta) q
  double* dk_magnitude = nullptr;  ///< [key rows, dim_qk]: softmax_scale * sum P (D |dP| + |delta|) |q|
  double* dv = nullptr;            ///< [key rows, dim_v]: sum D P dout
  double* dv_magnitude = nullptr;  ///< [key rows, dim_v]: sum D P |dout|
};

/// s = softmax_scale * q k^T where the mask allows; folds D softmax(s) v into `running`, where D is 0 for
/// what is dropped and 1 / (1 - probability) for the rest. A row that sees none of the keys keeps its bits.
/// @source Milakov and Gimelshein 2018, arXiv:1805.02867, algorithm 3 (running maximum and sum)
void fold_reference_attention(const ReferenceHead& head, const ReferenceQueries& queries,
                              const ReferenceKeys& keys, const ReferenceOutput& running);

/// Adds the share of these queries and keys to the gradients. P = exp(s - lse), dP = dout v^T. Rows with lse
/// = -inf contribute nothing.
/// @source Dao 2023, arXiv:2307.08691, section 3.1.2
void fold_reference_gradient(const ReferenceHead& head, const ReferenceQueries& queries,
                             const ReferenceOutputGradient& output, const ReferenceKeys& keys,
                             const ReferenceGradient& gradient);

/// After the last keys: a logit that belongs to no key, so that the rest sums to less than 1. A row that saw
/// nothing gets the lse `sink`; a sink of -inf changes nothing.
void add_reference_sink(double sink, std::int64_t rows, std::int64_t dim_v, const ReferenceOutput& output);

/// The share of these rows in the gradient of the sink: - sum exp(sink - lse) delta.
/// @param lse, delta  as in ReferenceOutputGradient
[[nodiscard]] double reference_sink_gradient(double sink, std::span<const double> lse,
                                             std::span<const double> delta);

/// One head of a tensor on the host, [rows, dim].
[[nodiscard]] std::vector<double> head_in_fp64(ConstTensorView tensor, std::int64_t head);

/// Every position of `ranges`, one by one.
[[nodiscard]] std::vector<std::int64_t> single_positions(std::span<const PositionRange> ranges);

}  // namespace hcp
