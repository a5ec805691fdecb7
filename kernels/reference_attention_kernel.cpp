// The reference attention behind the interface of every kernel: fp64 inside, storage types and fp32 outside.

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/attention_kernel.hpp"
#include "kernels/reference_attention.hpp"
#include "kernels/row_operations.hpp"

namespace hcp {
namespace {

using Doubles = std::vector<double>;

/// A table of fp32 values [rows, heads, dim] that is read and written head by head.
struct HeadTable {
  std::int64_t rows;
  std::int64_t heads;
  std::int64_t dim;

  [[nodiscard]] Doubles read(const float* table, std::int64_t head) const {
    Doubles values;
    for (std::int64_t row = 0; row < rows; ++row) {
      const float* const first = table + (row * heads + head) * dim;
      values.insert(values.end(), first, first + dim);
    }
    return values;
  }

  void write(const Doubles& values, float* table, std::int64_t head) const {
    for (std::int64_t row = 0; row < rows; ++row) {
      std::transform(values.begin() + row * dim, values.begin() + (row + 1) * dim,
                     table + (row * heads + head) * dim,
                     [](double value) { return static_cast<float>(value); });
    }
  }

  void add(const Doubles& values, float* table, std::int64_t head) const {
    Doubles sums = read(table, head);
    std::ranges::transform(sums, values, sums.begin(), std::plus{});
    write(sums, table, head);
  }
};

void check(bool right, const char* what) {
  if (!right) {
    throw std::invalid_argument{std::string{"attention block: "} + what};
  }
}

void check_shapes(const BlockRule& rule, const QueryBlock& query, const KvBlock& kv) {
  check(rule.mask != nullptr, "a mask is needed");
  check(query.q.rows == count_of(query.positions), "q has not one row per position");
  check(kv.k.rows == count_of(kv.positions), "k has not one row per position");
  check(kv.v.rows == kv.k.rows && kv.v.heads == kv.k.heads, "k and v differ in rows or heads");
  check(query.q.dim == kv.k.dim, "q and k differ in their dimension");
  if (!query.positions.empty()) {
    check_dropout(rule.dropout, query.positions.front().begin, query.positions.back().end - 1);
  }
  for (std::int64_t head = 0; head < query.q.heads; ++head) {
    const std::int64_t kv_head = rule.heads.kv_head_of(head);
    check(kv_head >= 0 && kv_head < kv.k.heads, "a query head uses a KV head that the block does not hold");
  }
}

/// One KV head and its positions in fp64.
struct KvHead {
  std::vector<std::int64_t> positions;
  Doubles k;
  Doubles v;

  KvHead(const KvBlock& kv, std::int64_t head)
      : positions{single_positions(kv.positions)}, k{head_in_fp64(kv.k, head)}, v{head_in_fp64(kv.v, head)} {}
  [[nodiscard]] ReferenceKeys view() const { return {positions, k.data(), v.data()}; }
};

void scale_row(Doubles& rows, std::size_t row, std::int64_t dim, double factor) {
  const auto first = rows.begin() + static_cast<std::int64_t>(row) * dim;
  std::for_each(first, first + dim, [factor](double& value) { value *= factor; });
}

ReferenceHead reference_head(const BlockRule& rule, const KvBlock& kv, std::int64_t head) {
  return {rule.mask,     static_cast<double>(rule.softmax_scale), kv.k.dim, kv.v.dim,
          &rule.dropout, rule.heads.first_query_head + head};
}

class ReferenceAttentionKernel final : public AttentionKernel {
 public:
  [[nodiscard]] MemorySpace memory_space() const override { return MemorySpace::host; }

  void forward_block(const BlockRule& rule, const QueryBlock& query, const KvBlock& kv,
                     const RunningOutput& running) override {
    check_shapes(rule, query, kv);
    const std::vector<std::int64_t> positions = single_positions(query.positions);
    const HeadTable out_table{query.q.rows, query.q.heads, kv.v.dim};
    const HeadTable row_table{query.q.rows, query.q.heads, 1};
    for (std::int64_t head = 0; head < query.q.heads; ++head) {
      const KvHead keys{kv, rule.heads.kv_head_of(head)};
      const Doubles q = head_in_fp64(query.q, head);
      Doubles out = out_table.read(running.out, head);
      Doubles max = row_table.read(running.max, head);
      Doubles sum = row_table.read(running.sum, head);
      Doubles lse(max.size());
      for (std::size_t row = 0; row < lse.size(); ++row) {
        max[row] *= std::numbers::ln2;
        lse[row] = max[row] + std::log(sum[row]);
        scale_row(out, row, kv.v.dim, sum[row] > 0.0 ? 1.0 / sum[row] : 1.0);
      }
      fold_reference_attention(reference_head(rule, kv, head), {positions, q.data()}, keys.view(),
                               {out.data(), lse.data(), max.data()});
      for (std::size_t row = 0; row < lse.size(); ++row) {
        sum[row] = std::isinf(max[row]) ? 0.0 : std::exp(lse[row] - max[row]);
        scale_row(out, row, kv.v.dim, sum[row] > 0.0 ? sum[row] : 1.0);
        max[row] *= std::numbers::log2e;
      }
      out_table.write(out, running.out, head);
      row_table.write(max, running.max, head);
      row_table.write(sum, running.sum, head);
    }
  }

  void max_logits(const float* max, std::int64_t rows, std::int64_t heads, float* logits) override {
    max_logits_host(max, rows, heads, logits);
  }
  void finish_forward(const RunningOutput& running, std::int64_t rows, std::int64_t heads, std::int64_t dim_v,
                      float* lse, const float* sinks) override {
    finish_forward_host(running, rows, heads, dim_v, lse, sinks);
  }
  void sink_gradients(const float* sinks, const float* lse, const float* delta, std::int64_t rows,
                      std::int64_t heads, float* dsinks) override {
    const HeadTable row_table{rows, heads, 1};
    for (std::int64_t head = 0; head < heads; ++head) {
      dsinks[head] = static_cast<float>(reference_sink_gradient(
          static_cast<double>(sinks[head]), row_table.read(lse, head), row_table.read(delta, head)));
    }
  }

  void backward_block(const BlockRule& rule, const GradientBlock& gradient, const KvBlock& kv,
                      const KvGradient& kv_gradient) override {
    const QueryBlock& query = gradient.query;
    check_shapes(rule, query, kv);
    check(gradient.dout.rows == query.q.rows && gradient.dout.heads == query.q.heads &&
              gradient.dout.dim == kv.v.dim,
          "dout has not the shape of out");
    const std::vector<std::int64_t> positions = single_positions(query.positions);
    const HeadTable row_table{query.q.rows, query.q.heads, 1};
    const HeadTable dq_table{query.q.rows, query.q.heads, query.q.dim};
    const HeadTable dk_table{kv.k.rows, kv.k.heads, kv.k.dim};
    const HeadTable dv_table{kv.v.rows, kv.v.heads, kv.v.dim};
    for (std::int64_t head = 0; head < query.q.heads; ++head) {
      const std::int64_t kv_head = rule.heads.kv_head_of(head);
      const KvHead keys{kv, kv_head};
      const Doubles q = head_in_fp64(query.q, head);
      const Doubles dout = head_in_fp64(gradient.dout, head);
      const Doubles lse = row_table.read(gradient.lse, head);
      const Doubles delta = row_table.read(gradient.delta, head);
      Doubles dq(q.size());
      Doubles dk(keys.k.size());
      Doubles dv(keys.v.size());
      fold_reference_gradient(reference_head(rule, kv, head), {positions, q.data()},
                              {dout.data(), lse.data(), delta.data()}, keys.view(),
                              {.dq = dq.data(), .dk = dk.data(), .dv = dv.data()});
      dq_table.add(dq, gradient.dq, head);
      dk_table.add(dk, kv_gradient.dk, kv_head);
      dv_table.add(dv, kv_gradient.dv, kv_head);
    }
  }

  void row_dot(ConstTensorView out, ConstTensorView dout, float* delta) override {
    row_dot_host(out, dout, delta);
  }
  void copy_rows(const BasicRowTable<const std::byte>& source, const BasicRowTable<std::byte>& target,
                 std::int64_t rows, std::int64_t elements) override {
    copy_rows_host(source, target, rows, elements);
  }
  void add_rows(const BasicRowTable<const std::byte>& source, const BasicRowTable<std::byte>& target,
                std::int64_t rows, std::int64_t elements) override {
    add_rows_host(source, target, rows, elements);
  }
  void fill(float* target, std::int64_t count, float value) override { std::fill_n(target, count, value); }
};

}  // namespace

std::unique_ptr<AttentionKernel> make_reference_attention_kernel() {
  return std::make_unique<ReferenceAttentionKernel>();
}

}  // namespace hcp
