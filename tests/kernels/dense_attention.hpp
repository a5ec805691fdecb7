/// Attention by its definition, for tests: fp64, a dense mask, every score stored.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/attention_kernel.hpp"
#include "tests/kernels/mask_definition.hpp"

namespace hcp::test {

struct AttentionCase {
  std::vector<std::int64_t> doc_lengths{64};
  bool causal = false;
  std::int64_t heads_q = 2;
  std::int64_t heads_kv = 2;
  HeadMap heads = {};
  std::int64_t dim_qk = 16;
  std::int64_t dim_v = 16;
  DataType type = DataType::fp32;
  float q_magnitude = 1.0F;
  std::optional<MaskDefinition> any_mask = {};  ///< instead of doc_lengths and causal
  std::optional<float> scale = {};              ///< instead of 1 / sqrt(dim_qk)

  [[nodiscard]] MaskDefinition mask_definition() const;
  [[nodiscard]] std::int64_t tokens() const { return mask_definition().queries(); }
  [[nodiscard]] std::int64_t key_tokens() const { return mask_definition().keys(); }
  [[nodiscard]] AttentionMask mask() const { return mask_definition().mask(); }
  [[nodiscard]] float softmax_scale() const;
};

/// A tensor in its storage type together with the values stored, exactly.
struct StoredTensor {
  DataType type = DataType::fp32;
  std::int64_t rows = 0;
  std::int64_t heads = 0;
  std::int64_t dim = 0;
  std::vector<std::byte> bytes;
  std::vector<float> values;

  [[nodiscard]] ConstTensorView view() const { return {bytes.data(), type, rows, heads, dim}; }
  [[nodiscard]] StoredTensor rows_at(const PositionSet& positions) const;
};

struct Operands {
  StoredTensor q, k, v, dout;
};

/// Normally distributed values of unit variance (q: times q_magnitude).
[[nodiscard]] Operands random_operands(const AttentionCase& setup, unsigned seed);

/// A result and, where cancellation may make it vanish, the same sum in absolute values.
struct DenseResult {
  std::vector<double> values;
  std::vector<double> magnitudes;
};

struct DenseAttention {
  DenseResult out, lse, dq, dk, dv;  ///< layouts as in RunningOutput, GradientBlock, KvGradient
};

[[nodiscard]] DenseAttention dense_attention(const AttentionCase& setup, const Operands& operands);

/// |x - reference| / max(|reference|, |magnitudes|) in the L2 norm; infinite if x and the reference differ in
/// where they are infinite, or if x has a NaN.
[[nodiscard]] double relative_error(const std::vector<float>& x, const DenseResult& reference);

}  // namespace hcp::test
