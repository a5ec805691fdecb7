// The answer: dense fp64 arithmetic head by head.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <utility>

#include "tests/attention/attention_case.hpp"
#include "topology/mpi_collectives.hpp"

namespace hcp {
namespace {

using DenseMask = std::vector<std::vector<bool>>;  // [query][key]

std::size_t at(std::int64_t row, std::int64_t heads, std::int64_t head, std::int64_t dim = 1,
               std::int64_t c = 0) {
  return static_cast<std::size_t>((row * heads + head) * dim + c);
}

std::vector<float> random_tensor(std::int64_t count, DataType type, std::uint64_t seed) {
  std::mt19937_64 generator{seed};
  std::normal_distribution<float> normal;
  std::vector<float> exact(static_cast<std::size_t>(count));
  for (float& value : exact) {
    value = normal(generator);
  }
  std::vector<std::byte> stored(exact.size() * size_of(type));
  round_to(type, exact.data(), stored.data(), exact.size());
  widen(type, stored.data(), exact.data(), exact.size());
  return exact;
}

/// One query row of one head.
void solve_row(const Problem& p, std::int64_t head, std::int64_t i, const std::vector<std::int64_t>& seen,
               Answer& a) {
  const std::int64_t kv_head = head / (p.heads_q / p.heads_kv);
  const double scale = p.scale();
  std::vector<double> weight;
  double largest = -std::numeric_limits<double>::infinity();
  for (const std::int64_t j : seen) {
    double s = 0.0;
    for (std::int64_t c = 0; c < p.dim_qk; ++c) {
      s += static_cast<double>(a.q[at(i, p.heads_q, head, p.dim_qk, c)]) *
           a.k[at(j, p.heads_kv, kv_head, p.dim_qk, c)];
    }
    weight.push_back(s * scale);
    largest = std::max(largest, weight.back());
  }
  double sum = 0.0;
  for (double& w : weight) {
    sum += w = std::exp(w - largest);
  }
  a.lse[at(i, p.heads_q, head)] = largest + std::log(sum);
  double delta = 0.0;
  for (std::int64_t c = 0; c < p.dim_v; ++c) {
    double out = 0.0;
    for (std::size_t n = 0; n < seen.size(); ++n) {
      out += weight[n] / sum * a.v[at(seen[n], p.heads_kv, kv_head, p.dim_v, c)];
    }
    a.out[at(i, p.heads_q, head, p.dim_v, c)] = out;
    delta += out * a.dout[at(i, p.heads_q, head, p.dim_v, c)];
  }
  for (std::size_t n = 0; n < seen.size(); ++n) {
    const std::int64_t j = seen[n];
    const double probability = weight[n] / sum;
    double dp = 0.0;
    for (std::int64_t c = 0; c < p.dim_v; ++c) {
      const double dout = a.dout[at(i, p.heads_q, head, p.dim_v, c)];
      dp += dout * a.v[at(j, p.heads_kv, kv_head, p.dim_v, c)];
      a.dv[at(j, p.heads_kv, kv_head, p.dim_v, c)] += probability * dout;
      a.dv_size[at(j, p.heads_kv, kv_head, p.dim_v, c)] += probability * std::abs(dout);
    }
    const double ds = scale * probability * (dp - delta);
    const double ds_size = scale * probability * (std::abs(dp) + std::abs(delta));
    for (std::int64_t c = 0; c < p.dim_qk; ++c) {
      const std::size_t iq = at(i, p.heads_q, head, p.dim_qk, c);
      const std::size_t jk = at(j, p.heads_kv, kv_head, p.dim_qk, c);
      a.dq[iq] += ds * a.k[jk];
      a.dq_size[iq] += ds_size * std::abs(static_cast<double>(a.k[jk]));
      a.dk[jk] += ds * a.q[iq];
      a.dk_size[jk] += ds_size * std::abs(static_cast<double>(a.q[iq]));
    }
  }
}

/// The share of every `stride`-th head from `first` on, zero elsewhere.
Answer solve_heads(const Problem& p, Answer a, int first, int stride) {
  a.out.assign(a.dout.size(), 0.0);
  a.lse.assign(static_cast<std::size_t>(p.mask.queries() * p.heads_q), 0.0);
  for (auto* tensor : {&a.dq, &a.dq_size}) {
    tensor->assign(a.q.size(), 0.0);
  }
  for (auto* tensor : {&a.dk, &a.dk_size}) {
    tensor->assign(a.k.size(), 0.0);
  }
  for (auto* tensor : {&a.dv, &a.dv_size}) {
    tensor->assign(a.v.size(), 0.0);
  }
  const DenseMask sees = p.mask.dense();
  std::vector<std::int64_t> seen;
  for (std::size_t i = 0; i < sees.size(); ++i) {
    seen.clear();
    for (std::size_t j = 0; j < sees[i].size(); ++j) {
      if (sees[i][j]) {
        seen.push_back(static_cast<std::int64_t>(j));
      }
    }
    for (std::int64_t head = first; head < p.heads_q; head += stride) {
      if (seen.empty()) {
        a.lse[at(static_cast<std::int64_t>(i), p.heads_q, head)] = -std::numeric_limits<double>::infinity();
      } else {
        solve_row(p, head, static_cast<std::int64_t>(i), seen, a);
      }
    }
  }
  return a;
}

}  // namespace

Answer random_input(const Problem& p) {
  const std::int64_t queries = p.mask.queries();
  const std::int64_t keys = p.mask.keys();
  Answer a;
  a.q = random_tensor(queries * p.heads_q * p.dim_qk, p.type, p.seed * 4);
  a.k = random_tensor(keys * p.heads_kv * p.dim_qk, p.type, p.seed * 4 + 1);
  a.v = random_tensor(keys * p.heads_kv * p.dim_v, p.type, p.seed * 4 + 2);
  a.dout = random_tensor(queries * p.heads_q * p.dim_v, p.type, p.seed * 4 + 3);
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
  for (auto* tensor : {&a.out, &a.lse, &a.dq, &a.dk, &a.dv, &a.dq_size, &a.dk_size, &a.dv_size}) {
    all_reduce(comm, Reduction::sum, std::span<double>{*tensor});
  }
  return a;
}

}  // namespace hcp
