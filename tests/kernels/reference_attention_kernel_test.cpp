// The reference behind the kernel interface: heads, layouts and storage types, against a naive attention in
// double.

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "kernels/attention_kernel.hpp"

namespace hcp {
namespace {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

struct Tensor {
  std::vector<std::byte> bytes;
  DataType type;
  std::int64_t rows, heads, dim;

  Tensor(DataType storage, std::int64_t r, std::int64_t h, std::int64_t d, unsigned seed)
      : bytes(static_cast<std::size_t>(r * h * d) * size_of(storage)),
        type{storage},
        rows{r},
        heads{h},
        dim{d} {
    std::mt19937 random{seed};
    std::normal_distribution<float> normal;
    std::vector<float> values(static_cast<std::size_t>(r * h * d));
    for (float& value : values) {
      value = normal(random);
    }
    round_to(type, values.data(), bytes.data(), values.size());
  }
  [[nodiscard]] ConstTensorView view() const { return {bytes.data(), type, rows, heads, dim}; }
  [[nodiscard]] double at(std::int64_t row, std::int64_t head, std::int64_t i) const {
    float value = 0;
    widen(type, bytes.data() + static_cast<std::size_t>((row * heads + head) * dim + i) * size_of(type),
          &value, 1);
    return value;
  }
};

double dot(const Tensor& a, std::int64_t row_a, std::int64_t head_a, const Tensor& b, std::int64_t row_b,
           std::int64_t head_b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.dim; ++i) {
    sum += a.at(row_a, head_a, i) * b.at(row_b, head_b, i);
  }
  return sum;
}

TEST(ReferenceAttentionKernel, GroupedHeadsOfEveryStorageType) {
  constexpr std::int64_t heads = 6, kv_heads = 3, tokens = 21, dim_qk = 8, dim_v = 16;
  const std::vector<std::int64_t> offsets{0, 9, 21};
  const std::vector<PositionRange> positions{{0, 21}};
  const AttentionMask mask = AttentionMask::causal(offsets);
  // Query heads 1..6 of a model with two per KV head: they use KV heads 0, 1, 1, 2, 2, 3.
  const HeadMap map{.first_query_head = 1, .first_kv_head = 0, .queries_per_kv = 2};
  const std::vector<std::int64_t> kv_head_of{0, 1, 1, 2, 2, 3};
  const BlockRule rule{&mask, map, 0.4F};
  for (const DataType type : {DataType::fp32, DataType::bf16, DataType::fp16}) {
    const Tensor q{type, tokens, heads, dim_qk, 1};
    const Tensor k{type, tokens, kv_heads + 1, dim_qk, 2};
    const Tensor v{type, tokens, kv_heads + 1, dim_v, 3};
    const Tensor dout{type, tokens, heads, dim_v, 4};
    std::vector<float> out(tokens * heads * dim_v);
    std::vector<float> lse(tokens * heads, minus_infinity);
    std::vector<float> sum(tokens * heads);
    const auto kernel = make_reference_attention_kernel();
    const KvBlock kv{k.view(), v.view(), positions};
    const RunningOutput running{out.data(), lse.data(), sum.data()};
    kernel->forward_block(rule, {q.view(), positions}, kv, running);
    kernel->finish_forward(running, tokens, heads, dim_v, lse.data());

    std::vector<float> delta(tokens * heads);
    std::vector<double> dq(tokens * heads * dim_qk), dk(tokens * 4 * dim_qk), dv(tokens * 4 * dim_v);
    for (std::int64_t row = 0; row < tokens; ++row) {
      for (std::int64_t head = 0; head < heads; ++head) {
        const std::int64_t kv_head = kv_head_of[static_cast<std::size_t>(head)];
        const std::int64_t first_key = row < 9 ? 0 : 9;
        double sum = 0;
        std::vector<double> p;
        for (std::int64_t key = first_key; key <= row; ++key) {
          p.push_back(std::exp(0.4F * dot(q, row, head, k, key, kv_head)));
          sum += p.back();
        }
        ASSERT_NEAR(lse[static_cast<std::size_t>(row * heads + head)], std::log(sum), 1e-6);
        double expected_delta = 0;
        for (std::int64_t i = 0; i < dim_v; ++i) {
          double expected = 0;
          for (std::int64_t key = first_key; key <= row; ++key) {
            expected += p[static_cast<std::size_t>(key - first_key)] / sum * v.at(key, kv_head, i);
          }
          ASSERT_NEAR(out[static_cast<std::size_t>((row * heads + head) * dim_v + i)], expected, 1e-6);
          expected_delta += expected * dout.at(row, head, i);
        }
        delta[static_cast<std::size_t>(row * heads + head)] = static_cast<float>(expected_delta);
        for (std::int64_t key = first_key; key <= row; ++key) {
          const double weight = p[static_cast<std::size_t>(key - first_key)] / sum;
          const double ds = 0.4F * weight * (dot(dout, row, head, v, key, kv_head) - expected_delta);
          for (std::int64_t i = 0; i < dim_qk; ++i) {
            dq[static_cast<std::size_t>((row * heads + head) * dim_qk + i)] += ds * k.at(key, kv_head, i);
            dk[static_cast<std::size_t>((key * 4 + kv_head) * dim_qk + i)] += ds * q.at(row, head, i);
          }
          for (std::int64_t i = 0; i < dim_v; ++i) {
            dv[static_cast<std::size_t>((key * 4 + kv_head) * dim_v + i)] += weight * dout.at(row, head, i);
          }
        }
      }
    }
    std::vector<float> dq_actual(dq.size(), 2.0F), dk_actual(dk.size(), 3.0F), dv_actual(dv.size(), 4.0F);
    kernel->backward_block(rule,
                           {{q.view(), positions}, dout.view(), lse.data(), delta.data(), dq_actual.data()},
                           kv, {dk_actual.data(), dv_actual.data()});
    for (std::size_t i = 0; i < dq.size(); ++i) {
      ASSERT_NEAR(dq_actual[i], dq[i] + 2.0, 1e-5);
    }
    for (std::size_t i = 0; i < dk.size(); ++i) {
      ASSERT_NEAR(dk_actual[i], dk[i] + 3.0, 1e-5);
    }
    for (std::size_t i = 0; i < dv.size(); ++i) {
      ASSERT_NEAR(dv_actual[i], dv[i] + 4.0, 1e-5);
    }
  }
}

TEST(ReferenceAttentionKernel, RefusesShapesThatDisagree) {
  const AttentionMask mask = AttentionMask::no_mask(std::vector<std::int64_t>{0, 4});
  const std::vector<PositionRange> four{{0, 4}};
  const std::vector<PositionRange> three{{0, 3}};
  const Tensor q{DataType::fp32, 4, 2, 8, 1};
  const Tensor wide{DataType::fp32, 4, 2, 16, 1};
  std::vector<float> out(64), max(8), sum(8);
  const RunningOutput running{out.data(), max.data(), sum.data()};
  const auto kernel = make_reference_attention_kernel();
  const BlockRule rule{&mask, {}, 1.0F};
  const auto forward = [&](const BlockRule& r, const QueryBlock& query, const KvBlock& kv) {
    kernel->forward_block(r, query, kv, running);
  };
  EXPECT_NO_THROW(forward(rule, {q.view(), four}, {q.view(), q.view(), four}));
  EXPECT_THROW(forward(rule, {q.view(), three}, {q.view(), q.view(), four}), std::invalid_argument);
  EXPECT_THROW(forward(rule, {q.view(), four}, {q.view(), q.view(), three}), std::invalid_argument);
  EXPECT_THROW(forward(rule, {q.view(), four}, {wide.view(), q.view(), four}), std::invalid_argument);
  EXPECT_THROW(forward({&mask, {.first_kv_head = 1}, 1.0F}, {q.view(), four}, {q.view(), q.view(), four}),
               std::invalid_argument);
  EXPECT_THROW(forward({nullptr, {}, 1.0F}, {q.view(), four}, {q.view(), q.view(), four}),
               std::invalid_argument);
}

}  // namespace
}  // namespace hcp
