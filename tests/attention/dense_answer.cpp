// The answer: dense fp64 arithmetic, one KV head after the other.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <random>
#include <span>
#include <utility>

#include "tests/attention/attention_case.hpp"
#include "topology/mpi_collectives.hpp"

namespace hcp {
namespace {

/// Of a tensor [rows, heads, dim], the heads that belong to one KV head.
struct HeadBlock {
  std::int64_t heads;
  std::int64_t dim;
  std::int64_t first;
  std::int64_t count;

  [[nodiscard]] std::int64_t width() const { return count * dim; }
  /// action(offset in the whole tensor, offset in the part) for each row of `elements`.
  template <typename Action>
  void for_each_row(std::size_t elements, const Action& action) const {
    const std::int64_t rows = static_cast<std::int64_t>(elements) / (heads * dim);
    for (std::int64_t row = 0; row < rows; ++row) {
      action((row * heads + first) * dim, row * width());
    }
  }
};

/// Nearly normal values of unit variance, the same on every machine: each the sum of four uniform ones, cut
/// out of one random word.
std::vector<float> random_tensor(std::int64_t count, DataType type, float largest, std::uint64_t seed) {
  std::mt19937_64 generator{seed};
  std::vector<float> exact(static_cast<std::size_t>(count));
  for (float& value : exact) {
    const std::uint64_t word = generator();
    const auto sum =
        static_cast<float>((word & 0xFFFF) + (word >> 16 & 0xFFFF) + (word >> 32 & 0xFFFF) + (word >> 48));
    value = std::clamp((sum / 65536.0F - 2.0F) * std::numbers::sqrt3_v<float>, -largest, largest);
  }
  std::vector<std::byte> stored(exact.size() * size_of(type));
  round_to(type, exact.data(), stored.data(), exact.size());
  widen(type, stored.data(), exact.data(), exact.size());
  return exact;
}

test::StoredTensor part_of(const std::vector<float>& whole, const HeadBlock& block, DataType type) {
  test::StoredTensor part{type, 0, block.count, block.dim, {}, {}};
  block.for_each_row(whole.size(), [&](std::int64_t at, std::int64_t) {
    part.values.insert(part.values.end(), whole.begin() + at, whole.begin() + at + block.width());
    ++part.rows;
  });
  return part;
}

void put(const std::vector<double>& part, const HeadBlock& block, std::vector<double>& whole) {
  block.for_each_row(whole.size(), [&](std::int64_t at, std::int64_t part_at) {
    std::copy_n(part.begin() + part_at, block.width(), whole.begin() + at);
  });
}

/// The norm over `dim` of every row of every head.
std::vector<double> norms_of(const std::vector<double>& values, std::int64_t dim) {
  std::vector<double> norms;
  for (auto row = values.begin(); row != values.end(); row += dim) {
    norms.push_back(std::sqrt(std::inner_product(row, row + dim, row, 0.0)));
  }
  return norms;
}

void put(const test::DenseResult& part, const HeadBlock& block, std::vector<double>& whole,
         std::vector<double>& sizes) {
  put(part.values, block, whole);
  put(norms_of(part.magnitudes, block.dim), {block.heads, 1, block.first, block.count}, sizes);
}

/// Everything that is computed from the inputs.
std::vector<std::vector<double>*> results_of(Answer& a) {
  return {&a.out,      &a.lse,     &a.dq,      &a.dk,      &a.dv,          &a.dsinks,         &a.max_logits,
          &a.lse_size, &a.dq_size, &a.dk_size, &a.dv_size, &a.dsinks_size, &a.max_logits_size};
}

void start(const Problem& p, Answer& a) {
  const auto rows_q = static_cast<std::size_t>(p.mask.queries() * p.heads_q);
  const auto rows_kv = static_cast<std::size_t>(p.mask.keys() * p.heads_kv);
  const auto heads = static_cast<std::size_t>(p.heads_q);
  const std::size_t sizes[] = {a.dout.size(),  rows_q,         a.q.size(), a.k.size(), a.v.size(),
                               p.sinks.size(), heads,          rows_q,     rows_q,     rows_kv,
                               rows_kv,        p.sinks.size(), heads};
  const auto results = results_of(a);
  for (std::size_t i = 0; i < results.size(); ++i) {
    results[i]->assign(sizes[i], 0.0);
  }
}

/// The share of every `stride`-th KV head from `first` on, zero elsewhere.
Answer solve_heads(const Problem& p, Answer a, int first, int stride) {
  start(p, a);
  const std::int64_t queries_per_kv = p.heads_q / p.heads_kv;
  for (std::int64_t kv_head = first; kv_head < p.heads_kv; kv_head += stride) {
    const auto query_heads = [&](std::int64_t dim) {
      return HeadBlock{p.heads_q, dim, kv_head * queries_per_kv, queries_per_kv};
    };
    const auto kv_heads = [&](std::int64_t dim) { return HeadBlock{p.heads_kv, dim, kv_head, 1}; };
    const test::DenseSoftmax part = test::dense_softmax(
        p.of_kv_head(kv_head),
        {part_of(a.q, query_heads(p.dim_qk), p.type), part_of(a.k, kv_heads(p.dim_qk), p.type),
         part_of(a.v, kv_heads(p.dim_v), p.type), part_of(a.dout, query_heads(p.dim_v), p.type)});
    put(part.attention.out.values, query_heads(p.dim_v), a.out);
    put(part.attention.lse, query_heads(1), a.lse, a.lse_size);
    put(part.attention.dq, query_heads(p.dim_qk), a.dq, a.dq_size);
    put(part.attention.dk, kv_heads(p.dim_qk), a.dk, a.dk_size);
    put(part.attention.dv, kv_heads(p.dim_v), a.dv, a.dv_size);
    put(part.dsinks, query_heads(1), a.dsinks, a.dsinks_size);
    put(part.max_logits, query_heads(1), a.max_logits, a.max_logits_size);
  }
  return a;
}

}  // namespace

Answer random_input(const Problem& p) {
  const std::int64_t queries = p.mask.queries();
  const std::int64_t keys = p.mask.keys();
  Answer a;
  a.q = random_tensor(queries * p.heads_q * p.dim_qk, p.type, p.largest_input, p.seed * 4);
  a.k = random_tensor(keys * p.heads_kv * p.dim_qk, p.type, p.largest_input, p.seed * 4 + 1);
  a.v = random_tensor(keys * p.heads_kv * p.dim_v, p.type, p.largest_input, p.seed * 4 + 2);
  a.dout = random_tensor(queries * p.heads_q * p.dim_v, p.type, p.largest_input, p.seed * 4 + 3);
  if (p.positive_dv) {
    for (float& value : a.dout) {
      value = std::abs(value);
    }
  }
  return a;
}

Answer solve(const Problem& problem) {
  return solve(problem, random_input(problem));
}

Answer solve(const Problem& problem, Answer input) {
  return solve_heads(problem, std::move(input), 0, 1);
}

Answer solve(const Problem& p, const MpiCommunicator& comm) {
  Answer a = solve_heads(p, random_input(p), comm.rank(), comm.size());
  for (std::vector<double>* const result : results_of(a)) {
    all_reduce(comm, Reduction::sum, std::span<double>{*result});
  }
  return a;
}

}  // namespace hcp
