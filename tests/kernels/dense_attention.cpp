#include "tests/kernels/dense_attention.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

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

/// Index of the first element of (row, head).
std::size_t at(const StoredTensor& tensor, std::size_t row, std::size_t head) {
  return (row * static_cast<std::size_t>(tensor.heads) + head) * static_cast<std::size_t>(tensor.dim);
}

double dot(const StoredTensor& a, std::size_t a_at, const StoredTensor& b, std::size_t b_at) {
  double sum = 0.0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(a.dim); ++i) {
    sum += static_cast<double>(a.values[a_at + i]) * static_cast<double>(b.values[b_at + i]);
  }
  return sum;
}

DenseResult zeros(std::size_t count) {
  return {std::vector<double>(count, 0.0), std::vector<double>(count, 0.0)};
}

/// result[result_at + i] += factor * tensor[tensor_at + i]; magnitudes with |tensor| and `magnitude`.
void add(DenseResult& result, std::size_t result_at, double factor, double magnitude,
         const StoredTensor& tensor, std::size_t tensor_at) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.dim); ++i) {
    const double value = tensor.values[tensor_at + i];
    result.values[result_at + i] += factor * value;
    result.magnitudes[result_at + i] += magnitude * std::abs(value);
  }
}

/// Everything of one query row of one head.
void attend(const AttentionCase& setup, const Operands& operands, const std::vector<std::size_t>& keys,
            std::size_t query, std::size_t head, DenseAttention& result) {
  const auto kv_head = static_cast<std::size_t>(
      (setup.heads.first_query_head + static_cast<std::int64_t>(head)) / setup.heads.queries_per_kv -
      setup.heads.first_kv_head);
  const double scale = setup.softmax_scale();
  const std::size_t lse_at = query * static_cast<std::size_t>(setup.heads_q) + head;
  if (keys.empty()) {
    result.lse.values[lse_at] = -std::numeric_limits<double>::infinity();
    return;
  }
  std::vector<double> p;
  for (const std::size_t key : keys) {
    p.push_back(scale *
                dot(operands.q, at(operands.q, query, head), operands.k, at(operands.k, key, kv_head)));
  }
  const double maximum = *std::ranges::max_element(p);
  double sum = 0.0;
  for (double& score : p) {
    score = std::exp(score - maximum);
    sum += score;
  }
  result.lse.values[lse_at] = maximum + std::log(sum);

  const std::size_t dout_at = at(operands.dout, query, head);
  std::vector<double> dp;
  double delta = 0.0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    p[i] /= sum;
    dp.push_back(dot(operands.dout, dout_at, operands.v, at(operands.v, keys[i], kv_head)));
    delta += p[i] * dp[i];
    add(result.out, dout_at, p[i], 0.0, operands.v, at(operands.v, keys[i], kv_head));
    add(result.dv, at(operands.v, keys[i], kv_head), p[i], p[i], operands.dout, dout_at);
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const double ds = scale * p[i] * (dp[i] - delta);
    const double magnitude = scale * p[i] * (std::abs(dp[i]) + std::abs(delta));
    const std::size_t q_at = at(operands.q, query, head);
    const std::size_t k_at = at(operands.k, keys[i], kv_head);
    add(result.dq, q_at, ds, magnitude, operands.k, k_at);
    add(result.dk, k_at, ds, magnitude, operands.q, q_at);
  }
}

}  // namespace

MaskDefinition AttentionCase::mask_definition() const {
  return any_mask.value_or(
      MaskDefinition{.kind = causal ? MaskKind::causal : MaskKind::no_mask, .doc_lengths = doc_lengths});
}

float AttentionCase::softmax_scale() const {
  return 1.0F / std::sqrt(static_cast<float>(dim_qk));
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
  const auto tokens = static_cast<std::size_t>(setup.tokens());
  const auto heads_q = static_cast<std::size_t>(setup.heads_q);
  DenseAttention result{zeros(operands.dout.values.size()), zeros(tokens * heads_q),
                        zeros(operands.q.values.size()), zeros(operands.k.values.size()),
                        zeros(operands.v.values.size())};
  const std::vector<std::vector<bool>> mask = setup.mask_definition().dense();
  for (std::size_t query = 0; query < tokens; ++query) {
    std::vector<std::size_t> keys;
    for (std::size_t key = 0; key < mask[query].size(); ++key) {
      if (mask[query][key]) {
        keys.push_back(key);
      }
    }
    for (std::size_t head = 0; head < heads_q; ++head) {
      attend(setup, operands, keys, query, head, result);
    }
  }
  return result;
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
