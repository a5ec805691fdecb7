#include "tests/kernels/dense_attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "tests/kernels/dense_softmax.hpp"

namespace hcp::test {
namespace {

StoredTensor random_tensor(DataType type, std::int64_t rows, std::int64_t heads, std::int64_t dim,
                           float magnitude, unsigned seed) {
  StoredTensor tensor{type, rows, heads, dim, {}, {}};
  tensor.values.resize(static_cast<std::size_t>(tensor.rows * heads * dim));
  std::mt19937 generator{seed};
  std::normal_distribution<float> normal{0.0F, magnitude};
  std::ranges::generate(tensor.values, [&] { return normal(generator); });
  tensor.bytes.resize(tensor.values.size() * size_of(type));
  round_to(type, tensor.values.data(), tensor.bytes.data(), tensor.values.size());
  widen(type, tensor.bytes.data(), tensor.values.data(), tensor.values.size());
  return tensor;
}

}  // namespace

MaskDefinition AttentionCase::mask_definition() const {
  return any_mask.value_or(
      MaskDefinition{.kind = causal ? MaskKind::causal : MaskKind::no_mask, .doc_lengths = doc_lengths});
}

float AttentionCase::softmax_scale() const {
  return scale.value_or(1.0F / std::sqrt(static_cast<float>(dim_qk)));
}

StoredTensor StoredTensor::rows_at(const PositionSet& positions) const {
  StoredTensor part{type, count_of(positions), heads, dim, {}, {}};
  const auto row_elements = heads * dim;
  const auto row_bytes = row_elements * static_cast<std::int64_t>(size_of(type));
  for (const PositionRange& range : positions) {
    part.bytes.insert(part.bytes.end(), bytes.begin() + range.begin * row_bytes,
                      bytes.begin() + range.end * row_bytes);
    part.values.insert(part.values.end(), values.begin() + range.begin * row_elements,
                       values.begin() + range.end * row_elements);
  }
  return part;
}

Operands random_operands(const AttentionCase& setup, unsigned seed) {
  const std::int64_t queries = setup.tokens();
  const std::int64_t keys = setup.key_tokens();
  return {random_tensor(setup.type, queries, setup.heads_q, setup.dim_qk, setup.q_magnitude, 4 * seed),
          random_tensor(setup.type, keys, setup.heads_kv, setup.dim_qk, 1.0F, 4 * seed + 1),
          random_tensor(setup.type, keys, setup.heads_kv, setup.dim_v, 1.0F, 4 * seed + 2),
          random_tensor(setup.type, queries, setup.heads_q, setup.dim_v, 1.0F, 4 * seed + 3)};
}

DenseAttention dense_attention(const AttentionCase& setup, const Operands& operands) {
  return dense_softmax({.attention = setup}, operands).attention;
}

double relative_error(const std::vector<float>& x, const DenseResult& reference) {
  double difference = 0.0;
  double norm = 0.0;
  double magnitude = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double expected = reference.values[i];
    if (std::isinf(expected) && static_cast<double>(x[i]) == expected) {
      continue;
    }
    if (!std::isfinite(x[i]) || std::isinf(expected)) {
      return std::numeric_limits<double>::infinity();
    }
    difference += (x[i] - expected) * (x[i] - expected);
    norm += expected * expected;
    magnitude += reference.magnitudes[i] * reference.magnitudes[i];
  }
  return difference == 0.0 ? 0.0 : std::sqrt(difference / std::max(norm, magnitude));
}

}  // namespace hcp::test
