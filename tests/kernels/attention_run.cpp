#include "tests/kernels/attention_run.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hcp::test {
namespace {

/// Rows of `whole` at `positions`, or back.
std::vector<float> gather(const std::vector<float>& all, const PositionSet& positions,
                          std::int64_t row_elements) {
  std::vector<float> part;
  for (const PositionRange& range : positions) {
    part.insert(part.end(), all.begin() + range.begin * row_elements, all.begin() + range.end * row_elements);
  }
  return part;
}

void scatter(const std::vector<float>& part, const PositionSet& positions, std::int64_t row_elements,
             std::vector<float>& all) {
  auto from = part.begin();
  for (const PositionRange& range : positions) {
    const auto count = range.size() * row_elements;
    std::copy_n(from, count, all.begin() + range.begin * row_elements);
    from += count;
  }
}

std::vector<float> rows_dot(const std::vector<float>& a, const std::vector<float>& b, std::int64_t dim) {
  std::vector<float> dots;
  for (std::size_t first = 0; first < a.size(); first += static_cast<std::size_t>(dim)) {
    double sum = 0.0;
    for (std::size_t i = first; i < first + static_cast<std::size_t>(dim); ++i) {
      sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    }
    dots.push_back(static_cast<float>(sum));
  }
  return dots;
}

}  // namespace

BlockSplit whole(const AttentionCase& setup) {
  return {{normalised({{0, setup.tokens()}})}, {normalised({{0, setup.key_tokens()}})}};
}

BlockSplit zigzag(const AttentionCase& setup, std::int64_t cp_size) {
  const auto shards_of = [&](std::int64_t tokens) {
    const auto chunk = [&](std::int64_t i) {
      return PositionRange{tokens * i / (2 * cp_size), tokens * (i + 1) / (2 * cp_size)};
    };
    std::vector<PositionSet> shards;
    for (std::int64_t rank = 0; rank < cp_size; ++rank) {
      shards.push_back(normalised({chunk(rank), chunk(2 * cp_size - 1 - rank)}));
    }
    return shards;
  };
  return {shards_of(setup.tokens()), shards_of(setup.key_tokens())};
}

std::vector<PositionSet> ranges_of_lengths(std::int64_t tokens, const std::vector<std::int64_t>& lengths) {
  std::vector<PositionSet> ranges;
  std::int64_t begin = 0;
  for (std::size_t i = 0; begin < tokens; ++i) {
    const std::int64_t end = std::min(tokens, begin + lengths[i % lengths.size()]);
    ranges.push_back({{begin, end}});
    begin = end;
  }
  return ranges;
}

AttentionRun run_attention(AttentionKernel& kernel, const AttentionCase& setup, const Operands& operands,
                           const BlockSplit& split) {
  const AttentionMask mask = setup.mask();
  const BlockRule rule{&mask, setup.heads, setup.softmax_scale()};
  const std::int64_t out_row = setup.heads_q * setup.dim_v;
  const std::int64_t q_row = setup.heads_q * setup.dim_qk;
  const std::int64_t k_row = setup.heads_kv * setup.dim_qk;
  const std::int64_t v_row = setup.heads_kv * setup.dim_v;
  AttentionRun run{std::vector<float>(operands.dout.values.size()),
                   std::vector<float>(static_cast<std::size_t>(setup.tokens() * setup.heads_q)),
                   std::vector<float>(operands.q.values.size()), std::vector<float>(operands.k.values.size()),
                   std::vector<float>(operands.v.values.size())};
  for (const PositionSet& queries : split.queries) {
    const StoredTensor q = operands.q.rows_at(queries);
    const StoredTensor dout = operands.dout.rows_at(queries);
    const QueryBlock query{q.view(), queries};
    std::vector<float> out(static_cast<std::size_t>(q.rows * out_row), 0.0F);
    std::vector<float> max(static_cast<std::size_t>(q.rows * setup.heads_q),
                           -std::numeric_limits<float>::infinity());
    std::vector<float> sum(max.size(), 0.0F);
    std::vector<float> lse(max.size());
    const RunningOutput running{out.data(), max.data(), sum.data()};
    for (const PositionSet& keys : split.keys) {
      const StoredTensor k = operands.k.rows_at(keys);
      const StoredTensor v = operands.v.rows_at(keys);
      kernel.forward_block(rule, query, {k.view(), v.view(), keys}, running);
    }
    kernel.finish_forward(running, q.rows, setup.heads_q, setup.dim_v, lse.data());
    const std::vector<float> delta = rows_dot(out, dout.values, setup.dim_v);
    std::vector<float> dq(q.values.size(), 0.0F);
    for (const PositionSet& keys : split.keys) {
      const StoredTensor k = operands.k.rows_at(keys);
      const StoredTensor v = operands.v.rows_at(keys);
      std::vector<float> dk = gather(run.dk, keys, k_row);
      std::vector<float> dv = gather(run.dv, keys, v_row);
      kernel.backward_block(rule, {query, dout.view(), lse.data(), delta.data(), dq.data()},
                            {k.view(), v.view(), keys}, {dk.data(), dv.data()});
      scatter(dk, keys, k_row, run.dk);
      scatter(dv, keys, v_row, run.dv);
    }
    scatter(out, queries, out_row, run.out);
    scatter(lse, queries, setup.heads_q, run.lse);
    scatter(dq, queries, q_row, run.dq);
  }
  return run;
}

double worst_error(const AttentionRun& run, const DenseAttention& reference) {
  return std::max({relative_error(run.out, reference.out), relative_error(run.lse, reference.lse),
                   relative_error(run.dq, reference.dq), relative_error(run.dk, reference.dk),
                   relative_error(run.dv, reference.dv)});
}

}  // namespace hcp::test
