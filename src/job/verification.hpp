/// Holds what one rank computed in one layer against standard attention in fp64.
///
/// Each rank checks its own rows and computes the inputs of all others again: only lse and delta travel,
/// through a callback. Nothing of size S x S exists.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/attention_mask.hpp"
#include "kernels/tensor.hpp"
#include "src/exchange/plan_memory.hpp"
#include "src/job/input.hpp"

namespace hcp {

enum class VerifiedTensor : std::uint8_t {
  out,
  lse,
  dq,
  dk,
  dv,
  stored_out,  ///< out against the one that the input file holds
  dsink,       ///< one number per query head, as max_logit
  max_logit,
};
inline constexpr std::size_t verified_tensors = 8;
[[nodiscard]] std::string_view name_of(VerifiedTensor tensor);

/// The largest error over the chunks of a rank. A chunk is a run of adjacent rows.
struct TensorError {
  /// |x - ref| / max(|ref|, |m|) in L2 norms over the rows of the chunk that were checked (dsink, max_logit:
  /// all rows of all ranks) and the rank's heads. m is the sum behind ref in absolute values (dq, dk:
  /// softmax_scale * sum P (|dP| + |delta|) |k| resp. |q|; dv: sum P |dout|; dsink: sum P |delta|; lse and
  /// max_logit: 1, see magnitude_of_exponent; out: 0), with |dP| and |delta| at least the L2 norm of
  /// the terms of that product. Infinite where x is NaN, where only one of x and ref is -inf, and where x is
  /// not 0 although the query sees no key (out, dq) or no query sees the key (dk, dv).
  double error = 0;
  PositionRange chunk;  ///< empty where all rows belong together
};

struct VerificationResult {
  std::array<std::optional<TensorError>, verified_tensors> errors;  ///< empty: not computed, or no rows here

  [[nodiscard]] const std::optional<TensorError>& of(VerifiedTensor tensor) const {
    return errors[static_cast<std::size_t>(tensor)];
  }
  /// 0 if nothing was checked.
  [[nodiscard]] double largest() const;
  /// Where the largest error is, "dk of tokens [0, 128)" or "dsink"; empty if nothing was checked.
  [[nodiscard]] std::string worst() const;
};

/// Heads [first, first + count) of the whole model.
struct HeadSpan {
  std::int64_t first = 0;
  std::int64_t count = 0;
  friend bool operator==(const HeadSpan&, const HeadSpan&) = default;
};

/// What one rank holds after a layer.
struct LayerResults {
  const AttentionMask* mask = nullptr;
  float softmax_scale = 1.0F;
  std::int64_t tokens = 0;  ///< queries of the whole micro-batch
  int layer = 0;
  PassSelection pass = PassSelection::both;  ///< after forward alone there is nothing in dq, dk and dv
  DataType dtype = DataType::fp32;           ///< to which all ranks rounded the inputs
  std::int64_t queries_per_kv = 1;
  HeadSpan query_heads;  ///< of the tensor-parallel rank, the same for all ranks of the CP group
  HeadSpan kv_heads;     ///< those that query_heads use
  std::int64_t dim_qk = 0;
  std::int64_t dim_v = 0;

  PositionSet rows;     ///< queries of this rank
  PositionSet kv_rows;  ///< its keys
  ConstTensorView out;  ///< [rows, query heads, dim_v]
  ConstTensorView dq;   ///< [rows, query heads, dim_qk]
  ConstTensorView dk;   ///< [kv rows, kv heads, dim_qk]
  ConstTensorView dv;   ///< [kv rows, kv heads, dim_v]

  /// After a head swap a rank holds lse of more rows and fewer heads. Every (row, query head) is held by one
  /// rank of the CP group.
  PositionSet lse_rows;
  HeadSpan lse_heads;
  const float* lse = nullptr;  ///< [lse rows, lse heads]

  Dropout dropout{};  ///< of this layer
  /// [query heads], empty where there is none: the sinks, this rank's share in their gradients, and in the
  /// largest scores.
  std::span<const float> sinks{};
  std::span<const float> dsinks{};
  std::span<const float> max_logits{};
};

enum class Coverage : std::uint8_t {
  full,  ///< every row against a reference that takes nothing from the run
  /// 64 rows for out, lse, dq; 16 keys for dk, dv, these with the run's own lse and delta; dsink from the
  /// run's lse and delta of all rows; max_logit only within bounds: the largest score of the 64 rows, and
  /// the run's largest lse
  sample,
};

/// What all ranks of the CP group gave, one after the other in rank order. Collective.
using GatherDoubles = std::function<std::vector<double>(std::span<const double>)>;

/// Called before each block of inputs is computed and before each gather: whoever watches for ranks that hang
/// may give each of these steps as long as any step.
using Progress = std::function<void()>;

/// Collective over the CP group: every rank calls `gather` equally often. A sample takes, besides what the
/// selected rows need, three numbers per token that sees a selected key, or per row where there are sinks,
/// for one query head at a time.
/// @throws std::invalid_argument if an input file cannot be read, perhaps on one rank alone
[[nodiscard]] VerificationResult verify_layer(const LayerResults& results, const InputSource& input,
                                              Coverage coverage, const GatherDoubles& gather,
                                              const Progress& progress);

/// FLOP that Coverage::full costs all ranks together, for one layer.
/// @param visible_pairs mask area of all queries
[[nodiscard]] double full_verification_flop(std::int64_t visible_pairs, const ProblemShape& shape,
                                            PassSelection passes);

/// Largest error allowed: a few rounding units of the storage type, as sums are kept in fp32.
[[nodiscard]] constexpr double verification_tolerance(DataType type) {
  switch (type) {
    case DataType::fp32:
      return 2e-6;
    case DataType::bf16:
      return 1e-2;
    case DataType::fp16:
      return 2e-3;
  }
  return 0;
}

}  // namespace hcp
