#include "tests/job/verified_group.hpp"

#include <cmath>
#include <thread>

namespace hcp::test {
namespace {

Stored input(const InputSource& source, InputTensor tensor, HeadSpan heads, std::int64_t dim, DataType type) {
  Stored values{type, tokens, heads.count, dim};
  source.fill(tensor, {{0, tokens}}, heads.first, 0, values.view());
  return values;
}

double dot(Stored& a, std::int64_t row_a, std::int64_t head_a, Stored& b, std::int64_t row_b,
           std::int64_t head_b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.dim; ++i) {
    sum += a.get(row_a, head_a, i) * b.get(row_b, head_b, i);
  }
  return sum;
}

/// Causal attention of every head and its gradient, dense, from the definition.
Whole dense_attention(const InputSource& source, DataType type) {
  Stored q = input(source, InputTensor::q, query_heads, dim_qk, type);
  Stored k = input(source, InputTensor::k, kv_heads, dim_qk, type);
  Stored v = input(source, InputTensor::v, kv_heads, dim_v, type);
  Stored dout = input(source, InputTensor::dout, query_heads, dim_v, type);
  Whole whole;
  std::vector<double> dk(static_cast<std::size_t>(tokens * kv_heads.count * dim_qk));
  std::vector<double> dv(static_cast<std::size_t>(tokens * kv_heads.count * dim_v));
  for (std::int64_t head = 0; head < query_heads.count; ++head) {
    const std::int64_t kv = head / queries_per_kv;
    for (std::int64_t row = 0; row < tokens; ++row) {
      const std::int64_t first = row < 120 ? 0 : 120;
      std::vector<double> p;
      double sum = 0;
      for (std::int64_t key = first; key <= row; ++key) {
        p.push_back(std::exp(scale * dot(q, row, head, k, key, kv)));
        sum += p.back();
      }
      whole.lse.set(row, head, 0, std::log(sum));
      std::vector<double> out(dim_v);
      for (std::int64_t key = first; key <= row; ++key) {
        p[static_cast<std::size_t>(key - first)] /= sum;
        for (std::int64_t i = 0; i < dim_v; ++i) {
          out[static_cast<std::size_t>(i)] += p[static_cast<std::size_t>(key - first)] * v.get(key, kv, i);
        }
      }
      double delta = 0;
      for (std::int64_t i = 0; i < dim_v; ++i) {
        whole.out.set(row, head, i, out[static_cast<std::size_t>(i)]);
        delta += out[static_cast<std::size_t>(i)] * dout.get(row, head, i);
      }
      std::vector<double> dq(dim_qk);
      for (std::int64_t key = first; key <= row; ++key) {
        const double weight = p[static_cast<std::size_t>(key - first)];
        const double ds = scale * weight * (dot(dout, row, head, v, key, kv) - delta);
        for (std::int64_t i = 0; i < dim_qk; ++i) {
          dq[static_cast<std::size_t>(i)] += ds * k.get(key, kv, i);
          dk[static_cast<std::size_t>((key * kv_heads.count + kv) * dim_qk + i)] += ds * q.get(row, head, i);
        }
        for (std::int64_t i = 0; i < dim_v; ++i) {
          dv[static_cast<std::size_t>((key * kv_heads.count + kv) * dim_v + i)] +=
              weight * dout.get(row, head, i);
        }
      }
      for (std::int64_t i = 0; i < dim_qk; ++i) {
        whole.dq.set(row, head, i, dq[static_cast<std::size_t>(i)]);
      }
    }
  }
  for (std::int64_t i = 0; i < tokens * kv_heads.count * dim_qk; ++i) {
    whole.dk.set(0, 0, i, dk[static_cast<std::size_t>(i)]);
  }
  for (std::int64_t i = 0; i < tokens * kv_heads.count * dim_v; ++i) {
    whole.dv.set(0, 0, i, dv[static_cast<std::size_t>(i)]);
  }
  return whole;
}

}  // namespace

Rank::Rank(std::size_t rank, Whole& whole, const AttentionMask& mask, DataType type)
    : out{whole.out.rows_at(shards[rank], type)},
      dq{whole.dq.rows_at(shards[rank], type)},
      dk{whole.dk.rows_at(shards[rank], type)},
      dv{whole.dv.rows_at(shards[rank], type)} {
  for (std::int64_t row = 0; row < tokens; ++row) {
    for (std::int64_t head = 0; head < lse_heads[rank].count; ++head) {
      lse.push_back(
          static_cast<float>(whole.lse.get(row, lse_heads[rank].first + head - query_heads.first, 0)));
    }
  }
  results = {.mask = &mask,
             .softmax_scale = scale,
             .tokens = tokens,
             .layer = 0,
             .pass = PassSelection::both,
             .dtype = type,
             .queries_per_kv = queries_per_kv,
             .query_heads = query_heads,
             .kv_heads = kv_heads,
             .dim_qk = dim_qk,
             .dim_v = dim_v,
             .rows = shards[rank],
             .kv_rows = shards[rank],
             .out = out.view(),
             .dq = dq.view(),
             .dk = dk.view(),
             .dv = dv.view(),
             .lse_rows = {{0, tokens}},
             .lse_heads = lse_heads[rank],
             .lse = lse.data()};
}

std::vector<VerificationResult> verify(Coverage coverage, DataType type,
                                       const std::function<void(std::vector<Rank>&)>& spoil) {
  const auto source = make_synthetic_input(21);
  const AttentionMask mask = AttentionMask::causal(offsets);
  Whole whole = dense_attention(*source, type);
  std::vector<Rank> ranks;
  ranks.reserve(shards.size());
  for (std::size_t rank = 0; rank < shards.size(); ++rank) {
    ranks.emplace_back(rank, whole, mask, type);
  }
  spoil(ranks);
  ThreadGather gather{shards.size()};
  std::vector<VerificationResult> verdicts(shards.size());
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < shards.size(); ++rank) {
    threads.emplace_back([&, rank] {
      verdicts[rank] = verify_layer(
          ranks[rank].results, *source, coverage,
          [&](std::span<const double> mine) { return gather.gather(rank, mine); }, [] {});
    });
  }
  threads.clear();
  return verdicts;
}

}  // namespace hcp::test
