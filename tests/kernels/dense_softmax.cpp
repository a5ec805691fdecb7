#include "tests/kernels/dense_softmax.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/kernels/kept_share.hpp"

namespace hcp::test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

DenseResult zeros(std::size_t count) {
  return {std::vector<double>(count), std::vector<double>(count)};
}

std::size_t at(const StoredTensor& tensor, std::size_t row, std::size_t head) {
  return (row * static_cast<std::size_t>(tensor.heads) + head) * static_cast<std::size_t>(tensor.dim);
}

/// A sum of products, and how large it counts. However much the sum cancels, it is held against the L2 norm
/// of its terms: to that the rounding errors of the terms add up, and a chunk of one row would be held
/// against chance otherwise.
struct Dot {
  double value = 0.0;
  double size = 0.0;
};
Dot dot_of(double sum, double squares) {
  return {sum, std::max(std::abs(sum), std::sqrt(squares))};
}

/// How large a logarithm counts: its error is the relative error of what it is the logarithm of.
double logarithm_size(double value) {
  return std::max(std::abs(value), 1.0);
}

/// a . b over a row of one head.
Dot dot(const StoredTensor& a, std::size_t a_at, const StoredTensor& b, std::size_t b_at) {
  constexpr std::size_t lanes = 4;  // sums side by side, which a compiler may keep in vectors
  double sums[lanes] = {};
  double squares[lanes] = {};
  const float* const of_a = a.values.data() + a_at;
  const float* const of_b = b.values.data() + b_at;
  const auto dim = static_cast<std::size_t>(a.dim);
  const auto take = [&](std::size_t i, std::size_t lane) {
    const double term = static_cast<double>(of_a[i]) * static_cast<double>(of_b[i]);
    sums[lane] += term;
    squares[lane] += term * term;
  };
  std::size_t i = 0;
  for (; i + lanes <= dim; i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      take(i + lane, lane);
    }
  }
  for (; i < dim; ++i) {
    take(i, 0);
  }
  return dot_of(sums[0] + sums[1] + sums[2] + sums[3], squares[0] + squares[1] + squares[2] + squares[3]);
}

/// result[result_at + i] += factor * tensor[tensor_at + i]; magnitudes with |tensor| and `magnitude`.
void add(DenseResult& result, std::size_t result_at, double factor, double magnitude,
         const StoredTensor& tensor, std::size_t tensor_at) {
  double* const values = result.values.data() + result_at;
  double* const magnitudes = result.magnitudes.data() + result_at;
  const float* const from = tensor.values.data() + tensor_at;
  for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.dim); ++i) {
    values[i] += factor * static_cast<double>(from[i]);
  }
  if (magnitude != 0.0) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.dim); ++i) {
      magnitudes[i] += magnitude * std::abs(static_cast<double>(from[i]));
    }
  }
}

/// One query row of one head.
void attend(const SoftmaxCase& setup, const Operands& operands, const std::vector<std::size_t>& keys,
            const KeptShare& kept, std::size_t query, std::size_t head, DenseSoftmax& result) {
  const HeadMap& heads = setup.attention.heads;
  const auto kv_head = static_cast<std::size_t>(heads.kv_head_of(static_cast<std::int64_t>(head)));
  const double sink = setup.sinks.empty() ? -infinity : static_cast<double>(setup.sinks[head]);
  const double softmax_scale = setup.attention.softmax_scale();
  const std::size_t q_at = at(operands.q, query, head);
  const std::size_t dout_at = at(operands.dout, query, head);
  const std::size_t lse_at = query * static_cast<std::size_t>(setup.attention.heads_q) + head;
  std::vector<double> scores;
  double largest = sink;
  for (const std::size_t key : keys) {
    const double score =
        softmax_scale * dot(operands.q, q_at, operands.k, at(operands.k, key, kv_head)).value;
    scores.push_back(score);
    if (double& logit = result.max_logits.values[head]; score > logit) {
      logit = score;
      result.max_logits.magnitudes[head] = logarithm_size(score);
    }
    largest = std::max(largest, score);
  }
  if (largest == -infinity) {
    result.attention.lse.values[lse_at] = -infinity;
    return;
  }
  double sum = std::exp(sink - largest);
  for (const double score : scores) {
    sum += std::exp(score - largest);
  }
  const double lse = largest + std::log(sum);
  result.attention.lse.values[lse_at] = lse;
  result.attention.lse.magnitudes[lse_at] = logarithm_size(lse);

  const std::vector<double> shares =
      kept.of(query, keys, heads.first_query_head + static_cast<std::int64_t>(head));
  std::vector<double> p;
  std::vector<double> dp;
  std::vector<double> dp_size;
  double delta = 0.0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::size_t v_at = at(operands.v, keys[i], kv_head);
    p.push_back(std::exp(scores[i] - lse));
    const Dot product = dot(operands.dout, dout_at, operands.v, v_at);
    dp.push_back(shares[i] * product.value);
    dp_size.push_back(shares[i] * product.size);
    delta += p[i] * dp[i];
    if (const double factor = shares[i] * p[i]; factor != 0.0) {
      add(result.attention.out, dout_at, factor, 0.0, operands.v, v_at);
      add(result.attention.dv, v_at, factor, factor, operands.dout, dout_at);
    }
  }
  double delta_squares = 0.0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(operands.dout.dim); ++i) {
    const double term =
        static_cast<double>(operands.dout.values[dout_at + i]) * result.attention.out.values[dout_at + i];
    delta_squares += term * term;
  }
  const double delta_size = dot_of(delta, delta_squares).size;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const double scale = softmax_scale * p[i];
    const double ds_size = scale * (dp_size[i] + delta_size);
    const std::size_t k_at = at(operands.k, keys[i], kv_head);
    add(result.attention.dq, q_at, scale * (dp[i] - delta), ds_size, operands.k, k_at);
    add(result.attention.dk, k_at, scale * (dp[i] - delta), ds_size, operands.q, q_at);
  }
  if (!setup.sinks.empty()) {
    const double p_sink = std::exp(sink - lse);
    result.dsinks.values[head] -= p_sink * delta;
    result.dsinks.magnitudes[head] += p_sink * delta_size;
  }
}

}  // namespace

DenseSoftmax dense_softmax(const SoftmaxCase& setup, const Operands& operands) {
  const auto heads = static_cast<std::size_t>(setup.attention.heads_q);
  const std::vector<std::vector<bool>> sees = setup.attention.mask_definition().dense();
  DenseSoftmax result{
      {zeros(operands.dout.values.size()), zeros(sees.size() * heads), zeros(operands.q.values.size()),
       zeros(operands.k.values.size()), zeros(operands.v.values.size())},
      zeros(setup.sinks.size()),
      {std::vector<double>(heads, -infinity), std::vector<double>(heads)}};
  const KeptShare kept{{.probability = setup.dropout,
                        .seed = setup.seed,
                        .layer = setup.layer,
                        .first_head = setup.first_head,
                        .query_offsets = {},
                        .key_offsets = {},
                        .documents_per_row = setup.documents_per_row},
                       setup.attention.mask_definition()};
  for (std::size_t query = 0; query < sees.size(); ++query) {
    std::vector<std::size_t> keys;
    for (std::size_t key = 0; key < sees[query].size(); ++key) {
      if (sees[query][key]) {
        keys.push_back(key);
      }
    }
    for (std::size_t head = 0; head < heads; ++head) {
      attend(setup, operands, keys, kept, query, head, result);
    }
  }
  return result;
}

}  // namespace hcp::test
