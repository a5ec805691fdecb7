#include "tests/bench/block_problem.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/data_type.hpp"
#include "kernels/position_ranges.hpp"

namespace hcp::bench {
namespace {

AttentionMask mask_of(const Case& setup, const DocumentBounds& documents) {
  return setup.causal ? AttentionMask::causal(documents) : AttentionMask::no_mask(documents);
}

PositionSet rows_of(const Case& setup) {
  if (setup.zigzag_cp == 0) {
    return {{0, setup.seq_len}};
  }
  const std::int64_t chunk = setup.seq_len / (2 * setup.zigzag_cp);
  return {{0, chunk}, {setup.seq_len - chunk, setup.seq_len}};
}

float* floats(const Buffer& buffer) {
  return reinterpret_cast<float*>(buffer.data());
}

}  // namespace

BlockProblem::BlockProblem(const Case& setup)
    : setup_{setup},
      offsets_{0, setup.seq_len},
      mask_{mask_of(setup, DocumentBounds{offsets_})},
      positions_{rows_of(setup)},
      rule_{&mask_,
            {0, 0, setup.heads_q / setup.heads_kv},
            1.0F / std::sqrt(static_cast<float>(setup.head_dim)),
            {.probability = setup.dropout, .query_offsets = offsets_, .key_offsets = offsets_}},
      kernel_{make_cpu_attention_kernel(setup.threads)},
      q_{random_tensor(setup.heads_q, 1)},
      k_{random_tensor(setup.heads_kv, 2)},
      v_{random_tensor(setup.heads_kv, 3)},
      dout_{random_tensor(setup.heads_q, 4)},
      out_{zeros(count_of(positions_) * setup.heads_q * setup.head_dim)},
      lse_{zeros(count_of(positions_) * setup.heads_q)},
      sum_{zeros(count_of(positions_) * setup.heads_q)},
      delta_{zeros(count_of(positions_) * setup.heads_q)},
      dq_{zeros(count_of(positions_) * setup.heads_q * setup.head_dim)},
      dk_{zeros(count_of(positions_) * setup.heads_kv * setup.head_dim)},
      dv_{zeros(count_of(positions_) * setup.heads_kv * setup.head_dim)} {}

Buffer BlockProblem::random_tensor(std::int64_t heads, unsigned seed) {
  std::mt19937 generator{seed};
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count_of(positions_) * heads * setup_.head_dim));
  for (float& value : values) {
    value = normal(generator);
  }
  Buffer stored{ledger_, MemoryCategory::qkv,
                static_cast<std::int64_t>(values.size() * size_of(setup_.type))};
  round_to(setup_.type, values.data(), stored.data(), values.size());
  return stored;
}

Buffer BlockProblem::zeros(std::int64_t count) {
  Buffer buffer{ledger_, MemoryCategory::accumulator, count * static_cast<std::int64_t>(sizeof(float))};
  std::fill_n(floats(buffer), count, 0.0F);
  return buffer;
}

void BlockProblem::forward() {
  kernel_->fill(floats(lse_), count_of(positions_) * setup_.heads_q, -std::numeric_limits<float>::infinity());
  // The maximum makes way for lse at the end.
  const RunningOutput running{floats(out_), floats(lse_), floats(sum_)};
  kernel_->forward_block(rule_, query(), kv(), running);
  kernel_->finish_forward(running, count_of(positions_), setup_.heads_q, setup_.head_dim, floats(lse_));
}

void BlockProblem::backward() {
  const ConstTensorView dout{dout_.data(), setup_.type, count_of(positions_), setup_.heads_q,
                             setup_.head_dim};
  kernel_->backward_block(rule_, {query(), dout, floats(lse_), floats(delta_), floats(dq_)}, kv(),
                          {floats(dk_), floats(dv_)});
}

double BlockProblem::forward_flops() const {
  return 4.0 * static_cast<double>(mask_.area(positions_, positions_) * setup_.heads_q * setup_.head_dim);
}

double BlockProblem::backward_flops() const {
  return 2.5 * forward_flops();
}

QueryBlock BlockProblem::query() const {
  return {{q_.data(), setup_.type, count_of(positions_), setup_.heads_q, setup_.head_dim}, positions_};
}

KvBlock BlockProblem::kv() const {
  return {{k_.data(), setup_.type, count_of(positions_), setup_.heads_kv, setup_.head_dim},
          {v_.data(), setup_.type, count_of(positions_), setup_.heads_kv, setup_.head_dim},
          positions_};
}

}  // namespace hcp::bench
