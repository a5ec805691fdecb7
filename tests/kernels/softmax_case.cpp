#include "tests/kernels/softmax_case.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "kernels/dropout.hpp"

namespace hcp::test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

std::vector<float> gather(const std::vector<float>& all, const PositionSet& positions,
                          std::int64_t elements) {
  std::vector<float> part;
  for (const PositionRange& range : positions) {
    part.insert(part.end(), all.begin() + range.begin * elements, all.begin() + range.end * elements);
  }
  return part;
}

void scatter(const std::vector<float>& part, const PositionSet& positions, std::int64_t elements,
             std::vector<float>& all) {
  auto from = part.begin();
  for (const PositionRange& range : positions) {
    std::copy_n(from, range.size() * elements, all.begin() + range.begin * elements);
    from += range.size() * elements;
  }
}

/// Document of each token, and its place there.
struct Place {
  std::size_t document;
  std::uint32_t place;
};
std::vector<Place> places_of(const std::vector<std::int64_t>& doc_lengths) {
  std::vector<Place> places;
  for (std::size_t document = 0; document < doc_lengths.size(); ++document) {
    for (std::int64_t place = 0; place < doc_lengths[document]; ++place) {
      places.push_back({document, static_cast<std::uint32_t>(place)});
    }
  }
  return places;
}

/// Whether and how much of an element is kept.
class KeptShare {
 public:
  explicit KeptShare(const SoftmaxCase& setup)
      : setup_{setup},
        queries_{places_of(setup.attention.mask_definition().doc_lengths)},
        keys_{places_of(setup.attention.mask_definition().key_lengths())} {}

  [[nodiscard]] double of(std::size_t query, std::size_t key, std::size_t head) const {
    if (setup_.dropout == 0.0) {
      return 1.0;
    }
    const auto rows = static_cast<std::size_t>(setup_.documents_per_row);
    const std::int64_t global_head =
        setup_.first_head + setup_.attention.heads.first_query_head + static_cast<std::int64_t>(head);
    const auto words =
        philox({static_cast<std::uint32_t>(setup_.layer),
                static_cast<std::uint32_t>(queries_[query].document / rows),
                static_cast<std::uint32_t>(queries_[query].document % rows),
                static_cast<std::uint32_t>(global_head)},
               {static_cast<std::uint32_t>(setup_.seed), static_cast<std::uint32_t>(setup_.seed >> 32)});
    const auto numbers = dropout_numbers({{words[0], words[1], words[2], words[3]}}, queries_[query].place,
                                         keys_[key].place / 64);
    const double probability = std::round(setup_.dropout * 65536.0) / 65536.0;
    return numbers.at(keys_[key].place % 64) < probability * 65536.0 ? 0.0 : 1.0 / (1.0 - probability);
  }

 private:
  const SoftmaxCase& setup_;
  std::vector<Place> queries_;
  std::vector<Place> keys_;
};

DenseResult zeros(std::size_t count) {
  return {std::vector<double>(count), std::vector<double>(count)};
}

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

void add(DenseResult& result, std::size_t result_at, double factor, double magnitude,
         const StoredTensor& tensor, std::size_t tensor_at) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.dim); ++i) {
    result.values[result_at + i] += factor * tensor.values[tensor_at + i];
    result.magnitudes[result_at + i] += magnitude * std::abs(tensor.values[tensor_at + i]);
  }
}

/// One query row of one head.
void attend(const SoftmaxCase& setup, const Operands& operands, const std::vector<std::size_t>& keys,
            const KeptShare& kept, std::size_t query, std::size_t head, DenseSoftmax& result) {
  const auto kv_head =
      static_cast<std::size_t>(setup.attention.heads.kv_head_of(static_cast<std::int64_t>(head)));
  const double sink = setup.sinks.empty() ? -infinity : static_cast<double>(setup.sinks[head]);
  const std::size_t q_at = at(operands.q, query, head);
  const std::size_t dout_at = at(operands.dout, query, head);
  double& lse = result.attention.lse.values[query * static_cast<std::size_t>(setup.attention.heads_q) + head];
  std::vector<double> scores;
  double largest = -infinity;
  for (const std::size_t key : keys) {
    scores.push_back(setup.attention.softmax_scale() *
                     dot(operands.q, q_at, operands.k, at(operands.k, key, kv_head)));
    largest = std::max(largest, scores.back());
  }
  double& logit = result.max_logits.values[head];
  logit = std::max(logit, largest);
  largest = std::max(largest, sink);
  if (largest == -infinity) {
    lse = -infinity;
    return;
  }
  double sum = std::exp(sink - largest);
  for (const double score : scores) {
    sum += std::exp(score - largest);
  }
  lse = largest + std::log(sum);

  std::vector<double> p;
  std::vector<double> dp;
  double delta = 0.0;
  double delta_magnitude = 0.0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::size_t v_at = at(operands.v, keys[i], kv_head);
    const double share = kept.of(query, keys[i], head);
    p.push_back(std::exp(scores[i] - lse));
    dp.push_back(share * dot(operands.dout, dout_at, operands.v, v_at));
    delta += p[i] * dp[i];
    delta_magnitude += p[i] * std::abs(dp[i]);
    add(result.attention.out, dout_at, share * p[i], 0.0, operands.v, v_at);
    add(result.attention.dv, v_at, share * p[i], share * p[i], operands.dout, dout_at);
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const double scale = setup.attention.softmax_scale() * p[i];
    const double magnitude = scale * (std::abs(dp[i]) + std::abs(delta));
    const std::size_t k_at = at(operands.k, keys[i], kv_head);
    add(result.attention.dq, q_at, scale * (dp[i] - delta), magnitude, operands.k, k_at);
    add(result.attention.dk, k_at, scale * (dp[i] - delta), magnitude, operands.q, q_at);
  }
  if (!setup.sinks.empty()) {
    const double p_sink = std::exp(sink - lse);
    result.dsinks.values[head] -= p_sink * delta;
    result.dsinks.magnitudes[head] += p_sink * delta_magnitude;
  }
}

}  // namespace

SoftmaxRun run_softmax(AttentionKernel& kernel, const SoftmaxCase& setup, const Operands& operands,
                       const BlockSplit& split) {
  const AttentionCase& shape = setup.attention;
  const MaskDefinition definition = shape.mask_definition();
  const AttentionMask mask = definition.mask();
  const std::vector<std::int64_t> query_offsets = offsets_of(definition.doc_lengths);
  const std::vector<std::int64_t> key_offsets = offsets_of(definition.key_lengths());
  const BlockRule rule{&mask,
                       shape.heads,
                       shape.softmax_scale(),
                       {.probability = setup.dropout,
                        .seed = setup.seed,
                        .layer = setup.layer,
                        .first_head = setup.first_head,
                        .query_offsets = query_offsets,
                        .key_offsets = key_offsets,
                        .documents_per_row = setup.documents_per_row}};
  const std::int64_t heads = shape.heads_q;
  const auto head_count = static_cast<std::size_t>(heads);
  SoftmaxRun run{{std::vector<float>(operands.dout.values.size()),
                  std::vector<float>(static_cast<std::size_t>(shape.tokens()) * head_count),
                  std::vector<float>(operands.q.values.size()), std::vector<float>(operands.k.values.size()),
                  std::vector<float>(operands.v.values.size())},
                 std::vector<float>(setup.sinks.size()),
                 std::vector<float>(head_count, -std::numeric_limits<float>::infinity())};
  for (const PositionSet& queries : split.queries) {
    const StoredTensor q = operands.q.rows_at(queries);
    const StoredTensor dout = operands.dout.rows_at(queries);
    const QueryBlock query{q.view(), queries};
    std::vector<float> out(dout.values.size());
    std::vector<float> max(static_cast<std::size_t>(q.rows) * head_count,
                           -std::numeric_limits<float>::infinity());
    std::vector<float> sum(max.size());
    const RunningOutput running{out.data(), max.data(), sum.data()};
    for (const PositionSet& keys : split.keys) {
      const StoredTensor k = operands.k.rows_at(keys);
      const StoredTensor v = operands.v.rows_at(keys);
      kernel.forward_block(rule, query, {k.view(), v.view(), keys}, running);
    }
    std::vector<float> logits(head_count);
    kernel.max_logits(max.data(), q.rows, heads, logits.data());
    std::ranges::transform(run.max_logits, logits, run.max_logits.begin(),
                           [](float a, float b) { return std::max(a, b); });
    std::vector<float>& lse = max;  // they may share memory
    kernel.finish_forward(running, q.rows, heads, shape.dim_v, lse.data(),
                          setup.sinks.empty() ? nullptr : setup.sinks.data());

    std::vector<float> delta(lse.size());
    const auto* const out_bytes = reinterpret_cast<const std::byte*>(out.data());
    kernel.row_dot({out_bytes, DataType::fp32, q.rows, heads, shape.dim_v}, dout.view(), delta.data());
    if (!setup.sinks.empty()) {
      std::vector<float> dsinks(head_count);
      kernel.sink_gradients(setup.sinks.data(), lse.data(), delta.data(), q.rows, heads, dsinks.data());
      std::ranges::transform(run.dsinks, dsinks, run.dsinks.begin(), std::plus{});
    }
    std::vector<float> dq(q.values.size());
    for (const PositionSet& keys : split.keys) {
      const StoredTensor k = operands.k.rows_at(keys);
      const StoredTensor v = operands.v.rows_at(keys);
      std::vector<float> dk = gather(run.attention.dk, keys, k.heads * k.dim);
      std::vector<float> dv = gather(run.attention.dv, keys, v.heads * v.dim);
      kernel.backward_block(rule, {query, dout.view(), lse.data(), delta.data(), dq.data()},
                            {k.view(), v.view(), keys}, {dk.data(), dv.data()});
      scatter(dk, keys, k.heads * k.dim, run.attention.dk);
      scatter(dv, keys, v.heads * v.dim, run.attention.dv);
    }
    scatter(out, queries, heads * shape.dim_v, run.attention.out);
    scatter(lse, queries, heads, run.attention.lse);
    scatter(dq, queries, heads * shape.dim_qk, run.attention.dq);
  }
  return run;
}

DenseSoftmax dense_softmax(const SoftmaxCase& setup, const Operands& operands) {
  const auto heads = static_cast<std::size_t>(setup.attention.heads_q);
  const std::vector<std::vector<bool>> sees = setup.attention.mask_definition().dense();
  DenseSoftmax result{
      {zeros(operands.dout.values.size()), zeros(sees.size() * heads), zeros(operands.q.values.size()),
       zeros(operands.k.values.size()), zeros(operands.v.values.size())},
      zeros(setup.sinks.size()),
      {std::vector<double>(heads, -infinity), std::vector<double>(heads)}};
  const KeptShare kept{setup};
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

void expect_close(const SoftmaxRun& run, const DenseSoftmax& reference, double tolerance) {
  EXPECT_LE(relative_error(run.attention.out, reference.attention.out), tolerance);
  EXPECT_LE(relative_error(run.attention.lse, reference.attention.lse), tolerance);
  EXPECT_LE(relative_error(run.attention.dq, reference.attention.dq), tolerance);
  EXPECT_LE(relative_error(run.attention.dk, reference.attention.dk), tolerance);
  EXPECT_LE(relative_error(run.attention.dv, reference.attention.dv), tolerance);
  EXPECT_LE(relative_error(run.dsinks, reference.dsinks), tolerance);
  EXPECT_LE(relative_error(run.max_logits, reference.max_logits), tolerance);
}

}  // namespace hcp::test
