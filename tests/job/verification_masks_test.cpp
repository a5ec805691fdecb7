// Verification where keys are other tokens than queries, some queries see nothing and some keys are seen by
// none: results of a dense attention in double, which the test then spoils.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "src/job/verification.hpp"

namespace hcp {
namespace {

constexpr std::int64_t queries = 40;
constexpr std::int64_t keys = 56;
constexpr std::int64_t heads = 2;  // of queries, for one of keys
constexpr std::int64_t dim = 8;
constexpr float scale = 0.4F;
constexpr float infinity = std::numeric_limits<float>::infinity();

/// Two runs of keys; queries 10 to 14 see none, and keys from 48 on are seen by none.
std::vector<PositionRange> seen_by(std::int64_t query) {
  if (query >= 10 && query < 15) {
    return {};
  }
  return {{query / 2, query / 2 + 5}, {30, 30 + query % 19}};
}

/// One rank's results of all queries and keys.
struct Results {
  std::vector<float> out = std::vector<float>(queries * heads * dim);
  std::vector<float> lse = std::vector<float>(queries * heads, -infinity);
  std::vector<float> dq = std::vector<float>(queries * heads * dim);
  std::vector<float> dk = std::vector<float>(keys * dim);
  std::vector<float> dv = std::vector<float>(keys * dim);
  std::vector<float> dsinks = std::vector<float>(heads);
  std::vector<float> max_logits = std::vector<float>(heads, -infinity);
};

std::vector<float> input(const InputSource& source, InputTensor tensor, std::int64_t rows,
                         std::int64_t heads_held) {
  std::vector<float> values(static_cast<std::size_t>(rows * heads_held * dim));
  source.fill(tensor, {{0, rows}}, 0, 0,
              {reinterpret_cast<std::byte*>(values.data()), DataType::fp32, rows, heads_held, dim});
  return values;
}

double dot(const float* a, const float* b) {
  double sum = 0;
  for (std::int64_t i = 0; i < dim; ++i) {
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  return sum;
}

/// @param sinks  [heads], -inf for none
Results dense_attention(const InputSource& source, const std::vector<float>& sinks) {
  const std::vector<float> q = input(source, InputTensor::q, queries, heads);
  const std::vector<float> k = input(source, InputTensor::k, keys, 1);
  const std::vector<float> v = input(source, InputTensor::v, keys, 1);
  const std::vector<float> dout = input(source, InputTensor::dout, queries, heads);
  Results results;
  std::vector<double> dk(keys * dim);
  std::vector<double> dv(keys * dim);
  std::vector<double> dsinks(heads);
  for (std::int64_t row = 0; row < queries * heads; ++row) {
    const auto head = static_cast<std::size_t>(row % heads);
    std::vector<double> p(keys, 0.0);
    const double of_sink = std::exp(static_cast<double>(sinks[head]));
    double sum = of_sink;
    for (const PositionRange range : seen_by(row / heads)) {
      for (std::int64_t key = range.begin; key < range.end; ++key) {
        p[static_cast<std::size_t>(key)] =
            std::exp(static_cast<double>(scale) *
                     dot(&q[static_cast<std::size_t>(row * dim)], &k[static_cast<std::size_t>(key * dim)]));
        sum += p[static_cast<std::size_t>(key)];
        results.max_logits[head] = std::max(results.max_logits[head],
                                            static_cast<float>(std::log(p[static_cast<std::size_t>(key)])));
      }
    }
    if (sum == 0) {
      continue;
    }
    results.lse[static_cast<std::size_t>(row)] = static_cast<float>(std::log(sum));
    std::vector<double> out(dim);
    for (std::int64_t i = 0; i < keys * dim; ++i) {
      out[static_cast<std::size_t>(i % dim)] +=
          p[static_cast<std::size_t>(i / dim)] / sum * static_cast<double>(v[static_cast<std::size_t>(i)]);
    }
    double delta = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::size_t element = static_cast<std::size_t>(row * dim) + i;
      results.out[element] = static_cast<float>(out[i]);
      delta += out[i] * static_cast<double>(dout[element]);
    }
    dsinks[head] -= of_sink / sum * delta;
    std::vector<double> dq(dim);
    for (std::int64_t key = 0; key < keys; ++key) {
      const double weight = p[static_cast<std::size_t>(key)] / sum;
      const double dp =
          dot(&dout[static_cast<std::size_t>(row * dim)], &v[static_cast<std::size_t>(key * dim)]);
      const double ds = static_cast<double>(scale) * weight * (dp - delta);
      for (std::int64_t i = 0; i < dim; ++i) {
        const auto of_query = static_cast<std::size_t>(row * dim + i);
        const auto of_key = static_cast<std::size_t>(key * dim + i);
        dq[static_cast<std::size_t>(i)] += ds * static_cast<double>(k[of_key]);
        dk[of_key] += ds * static_cast<double>(q[of_query]);
        dv[of_key] += weight * static_cast<double>(dout[of_query]);
      }
    }
    for (std::size_t i = 0; i < dq.size(); ++i) {
      results.dq[static_cast<std::size_t>(row * dim) + i] = static_cast<float>(dq[i]);
    }
  }
  results.dsinks.assign(dsinks.begin(), dsinks.end());
  results.dk.assign(dk.begin(), dk.end());
  results.dv.assign(dv.begin(), dv.end());
  return results;
}

ConstTensorView view_of(const std::vector<float>& values, std::int64_t rows, std::int64_t heads_held) {
  return {reinterpret_cast<const std::byte*>(values.data()), DataType::fp32, rows, heads_held, dim};
}

VerificationResult verify(Coverage coverage, const std::function<void(Results&)>& spoil,
                          const std::vector<float>& sinks = {}) {
  std::vector<std::int64_t> bounds;
  for (std::int64_t query = 0; query < queries; ++query) {
    std::vector<PositionRange> ranges = seen_by(query);
    ranges.resize(2);
    bounds.insert(bounds.end(), {ranges[0].begin, ranges[0].end, ranges[1].begin, ranges[1].end});
  }
  const AttentionMask mask = AttentionMask::intervals(bounds, keys);
  const auto source = make_synthetic_input(5);
  Results results = dense_attention(*source, sinks.empty() ? std::vector<float>(heads, -infinity) : sinks);
  spoil(results);
  const LayerResults layer{.mask = &mask,
                           .softmax_scale = scale,
                           .tokens = queries,
                           .layer = 0,
                           .pass = PassSelection::both,
                           .dtype = DataType::fp32,
                           .queries_per_kv = heads,
                           .query_heads = {0, heads},
                           .kv_heads = {0, 1},
                           .dim_qk = dim,
                           .dim_v = dim,
                           .rows = {{0, queries}},
                           .kv_rows = {{0, keys}},
                           .out = view_of(results.out, queries, heads),
                           .dq = view_of(results.dq, queries, heads),
                           .dk = view_of(results.dk, keys, 1),
                           .dv = view_of(results.dv, keys, 1),
                           .lse_rows = {{0, queries}},
                           .lse_heads = {0, heads},
                           .lse = results.lse.data(),
                           .dropout = {},
                           .sinks = sinks,
                           .dsinks = sinks.empty() ? std::span<const float>{} : results.dsinks,
                           .max_logits = results.max_logits};
  return verify_layer(
      layer, *source, coverage,
      [](std::span<const double> mine) {
        return std::vector<double>{mine.begin(), mine.end()};
      },
      [] {});
}

class Coverages : public testing::TestWithParam<Coverage> {};
INSTANTIATE_TEST_SUITE_P(Both, Coverages, testing::Values(Coverage::full, Coverage::sample),
                         [](const auto& info) { return info.param == Coverage::full ? "full" : "sample"; });

TEST_P(Coverages, RightResultsPass) {
  const VerificationResult result = verify(GetParam(), [](Results&) {});
  for (const VerifiedTensor tensor : {VerifiedTensor::out, VerifiedTensor::lse, VerifiedTensor::dq,
                                      VerifiedTensor::dk, VerifiedTensor::dv}) {
    ASSERT_TRUE(result.of(tensor).has_value()) << name_of(tensor);
    EXPECT_LT(result.of(tensor)->error, 2e-7) << name_of(tensor);
  }
  EXPECT_EQ(result.of(VerifiedTensor::dk)->chunk, (PositionRange{0, keys}));
}

TEST_P(Coverages, WhatSeesOrIsSeenByNothingIsExactlyZero) {
  constexpr float tiny = 1e-20F;  // lost in the norm of the chunk
  const auto blind = static_cast<std::size_t>(12 * heads * dim);
  const std::size_t last = keys * dim - 1;  // the last key is in every sample
  EXPECT_EQ(verify(GetParam(), [&](Results& r) { r.out[blind] = tiny; }).of(VerifiedTensor::out)->error,
            infinity);
  EXPECT_EQ(verify(GetParam(), [&](Results& r) { r.dq[blind] = tiny; }).of(VerifiedTensor::dq)->error,
            infinity);
  EXPECT_EQ(verify(GetParam(), [&](Results& r) { r.dk[last] = tiny; }).of(VerifiedTensor::dk)->error,
            infinity);
  EXPECT_EQ(verify(GetParam(), [&](Results& r) { r.dv[last] = tiny; }).of(VerifiedTensor::dv)->error,
            infinity);
  EXPECT_EQ(verify(GetParam(), [](Results& r) { r.lse[12 * heads] = 0; }).of(VerifiedTensor::lse)->error,
            infinity);
  // What takes part is measured by the norm.
  EXPECT_LT(verify(GetParam(), [](Results& r) { r.out[0] += tiny; }).largest(), 2e-7);
}

TEST_P(Coverages, SinksAreKeysOfNobody) {
  const std::vector<float> sinks{0.4F, -1.5F};
  const VerificationResult result = verify(
      GetParam(), [](Results&) {}, sinks);
  EXPECT_LT(result.largest(), 2e-7) << result.worst();
  for (const VerifiedTensor tensor : {VerifiedTensor::dsink, VerifiedTensor::max_logit}) {
    EXPECT_TRUE(result.of(tensor).has_value()) << name_of(tensor);
  }
  const VerificationResult wrong_lse = verify(
      GetParam(), [](Results& r) { r.lse[12 * heads] = 0; }, sinks);
  EXPECT_GT(wrong_lse.of(VerifiedTensor::lse)->error, 1e-3) << "what sees no key has the lse of the sink";
}

TEST_P(Coverages, TheGradientOfASinkIsASumOverAllRows) {
  const std::vector<float> sinks{0.4F, -1.5F};
  const VerificationResult dsink = verify(
      GetParam(), [](Results& r) { r.dsinks[1] *= 1.1F; }, sinks);
  EXPECT_GT(dsink.of(VerifiedTensor::dsink)->error, 1e-4);
  EXPECT_EQ(dsink.worst(), "dsink");
}

TEST_P(Coverages, ALargestLogitThatCannotBeIsFound) {
  for (const float wrong : {-0.01F, 20.0F, std::nanf("")}) {
    const VerificationResult logit = verify(GetParam(), [&](Results& r) { r.max_logits[0] += wrong; });
    EXPECT_GT(logit.of(VerifiedTensor::max_logit)->error, 1e-4) << wrong;
    EXPECT_EQ(logit.worst(), "max logit");
  }
}

TEST(FullCoverage, TheLargestLogitIsComparedWithItsValue) {
  const VerificationResult logit = verify(Coverage::full, [](Results& r) { r.max_logits[0] += 0.01F; });
  EXPECT_GT(logit.of(VerifiedTensor::max_logit)->error, 1e-4);
  EXPECT_EQ(logit.worst(), "max logit");
}

TEST(SampledCoverage, TheLargestLogitHasBounds) {
  // All 40 rows are in the sample, so that the largest score is known, but not that there is none above it.
  const VerificationResult logit = verify(Coverage::sample, [](Results& r) { r.max_logits[0] += 0.01F; });
  EXPECT_EQ(logit.of(VerifiedTensor::max_logit)->error, 0.0);
}

TEST_P(Coverages, WrongGradientsOfKeysAreFound) {
  const VerificationResult result = verify(GetParam(), [](Results& r) { r.dk[0] += 0.01F; });
  EXPECT_GT(result.of(VerifiedTensor::dk)->error, 1e-4);
  EXPECT_EQ(result.worst(), "dk of tokens [0, 56)");
}

}  // namespace
}  // namespace hcp
