// The fp64 reference against a naive attention in long double that is written from its definition, with a
// dense mask, and its gradient besides against finite differences.

#include "kernels/reference_attention.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace hcp {
namespace {

using Doubles = std::vector<double>;
using Offsets = std::vector<std::int64_t>;

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Problem {
  Offsets offsets;
  bool causal = false;
  std::int64_t dim_qk = 8;
  std::int64_t dim_v = 8;
  double softmax_scale = 0.35;
  Doubles q = {};
  Doubles k = {};
  Doubles v = {};
  Doubles dout = {};

  [[nodiscard]] std::int64_t tokens() const { return offsets.back(); }
  [[nodiscard]] AttentionMask mask() const {
    return causal ? AttentionMask::causal(offsets) : AttentionMask::no_mask(offsets);
  }
  [[nodiscard]] bool sees(std::int64_t query, std::int64_t key) const {
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
      if (offsets[i] <= query && query < offsets[i + 1]) {
        return offsets[i] <= key && key < offsets[i + 1] && (!causal || key <= query);
      }
    }
    return false;
  }
};

void fill_normal(Problem& problem, unsigned seed, double q_size = 1.0) {
  std::mt19937 random{seed};
  std::normal_distribution<double> normal;
  const auto values = [&](std::int64_t dim, double size) {
    Doubles tensor(static_cast<std::size_t>(problem.tokens() * dim));
    for (double& value : tensor) {
      value = size * normal(random);
    }
    return tensor;
  };
  problem.q = values(problem.dim_qk, q_size);
  problem.k = values(problem.dim_qk, 1.0);
  problem.v = values(problem.dim_v, 1.0);
  problem.dout = values(problem.dim_v, 1.0);
}

struct Results {
  Doubles out, lse, delta, delta_magnitude, dq, dk, dv, dq_magnitude, dk_magnitude, dv_magnitude;

  explicit Results(const Problem& problem) {
    const auto rows = static_cast<std::size_t>(problem.tokens());
    const auto dim_qk = static_cast<std::size_t>(problem.dim_qk);
    const auto dim_v = static_cast<std::size_t>(problem.dim_v);
    out = dv = dv_magnitude = Doubles(rows * dim_v);
    lse = Doubles(rows, -infinity);
    delta = delta_magnitude = Doubles(rows);
    dq = dk = dq_magnitude = dk_magnitude = Doubles(rows * dim_qk);
  }
};

long double dot(const Doubles& a, std::int64_t row_a, const Doubles& b, std::int64_t row_b,
                std::int64_t dim) {
  long double sum = 0;
  for (std::int64_t i = 0; i < dim; ++i) {
    sum += static_cast<long double>(a[static_cast<std::size_t>(row_a * dim + i)]) *
           b[static_cast<std::size_t>(row_b * dim + i)];
  }
  return sum;
}

/// The L2 norm of the terms of dot().
long double norm_of_terms(const Doubles& a, std::int64_t row_a, const Doubles& b, std::int64_t row_b,
                          std::int64_t dim) {
  long double squares = 0;
  for (std::int64_t i = 0; i < dim; ++i) {
    const long double term = static_cast<long double>(a[static_cast<std::size_t>(row_a * dim + i)]) *
                             b[static_cast<std::size_t>(row_b * dim + i)];
    squares += term * term;
  }
  return std::sqrt(squares);
}

void add_row(Doubles& target, std::int64_t row, long double factor, const Doubles& source,
             std::int64_t source_row, std::int64_t dim, bool magnitudes = false) {
  for (std::int64_t i = 0; i < dim; ++i) {
    const double value = source[static_cast<std::size_t>(source_row * dim + i)];
    target[static_cast<std::size_t>(row * dim + i)] +=
        static_cast<double>(factor * (magnitudes ? std::abs(value) : value));
  }
}

Results naive(const Problem& problem) {
  Results results{problem};
  const long double scale = problem.softmax_scale;
  for (std::int64_t query = 0; query < problem.tokens(); ++query) {
    const auto row = static_cast<std::size_t>(query);
    std::vector<long double> scores(static_cast<std::size_t>(problem.tokens()), -infinity);
    long double largest = -infinity;
    for (std::int64_t key = 0; key < problem.tokens(); ++key) {
      if (problem.sees(query, key)) {
        auto& score = scores[static_cast<std::size_t>(key)];
        score = scale * dot(problem.q, query, problem.k, key, problem.dim_qk);
        largest = std::max(largest, score);
      }
    }
    if (largest == -infinity) {
      continue;
    }
    long double sum = 0;
    for (const long double score : scores) {
      sum += std::exp(score - largest);
    }
    results.lse[row] = static_cast<double>(largest + std::log(sum));
    std::vector<long double> p(scores.size());
    for (std::int64_t key = 0; key < problem.tokens(); ++key) {
      p[static_cast<std::size_t>(key)] = std::exp(scores[static_cast<std::size_t>(key)] - largest) / sum;
      add_row(results.out, query, p[static_cast<std::size_t>(key)], problem.v, key, problem.dim_v);
    }
    const long double delta = dot(results.out, query, problem.dout, query, problem.dim_v);
    results.delta[row] = static_cast<double>(delta);
    const long double delta_magnitude =
        std::max(std::abs(delta), norm_of_terms(results.out, query, problem.dout, query, problem.dim_v));
    results.delta_magnitude[row] = static_cast<double>(delta_magnitude);
    for (std::int64_t key = 0; key < problem.tokens(); ++key) {
      const long double probability = p[static_cast<std::size_t>(key)];
      const long double dp = dot(problem.dout, query, problem.v, key, problem.dim_v);
      const long double ds = scale * probability * (dp - delta);
      const long double dp_magnitude =
          std::max(std::abs(dp), norm_of_terms(problem.dout, query, problem.v, key, problem.dim_v));
      const long double magnitude = scale * probability * (dp_magnitude + delta_magnitude);
      add_row(results.dq, query, ds, problem.k, key, problem.dim_qk);
      add_row(results.dk, key, ds, problem.q, query, problem.dim_qk);
      add_row(results.dv, key, probability, problem.dout, query, problem.dim_v);
      add_row(results.dq_magnitude, query, magnitude, problem.k, key, problem.dim_qk, true);
      add_row(results.dk_magnitude, key, magnitude, problem.q, query, problem.dim_qk, true);
      add_row(results.dv_magnitude, key, probability, problem.dout, query, problem.dim_v, true);
    }
  }
  return results;
}

std::vector<std::int64_t> first_positions(std::int64_t count) {
  std::vector<std::int64_t> positions(static_cast<std::size_t>(count));
  std::iota(positions.begin(), positions.end(), 0);
  return positions;
}

ReferenceHead head_of(const Problem& problem, const AttentionMask& mask) {
  return {&mask, problem.softmax_scale, problem.dim_qk, problem.dim_v};
}

/// Keys [begin, begin + positions.size()).
ReferenceKeys keys_from(const Problem& problem, std::span<const std::int64_t> positions) {
  return {positions, problem.k.data() + positions.front() * problem.dim_qk,
          problem.v.data() + positions.front() * problem.dim_v};
}

/// The whole problem, keys folded in by chunks.
Results reference(const Problem& problem, std::int64_t chunk) {
  Results results{problem};
  const AttentionMask mask = problem.mask();
  const ReferenceHead head = head_of(problem, mask);
  const std::vector<std::int64_t> all = first_positions(problem.tokens());
  const std::span<const std::int64_t> positions{all};
  const ReferenceQueries queries{positions, problem.q.data()};
  const auto chunks = [&](const std::function<void(std::span<const std::int64_t>)>& work) {
    for (std::int64_t first = 0; first < problem.tokens(); first += chunk) {
      work(positions.subspan(static_cast<std::size_t>(first),
                             static_cast<std::size_t>(std::min(chunk, problem.tokens() - first))));
    }
  };
  chunks([&](std::span<const std::int64_t> keys) {
    fold_reference_attention(head, queries, keys_from(problem, keys),
                             {results.out.data(), results.lse.data()});
  });
  for (std::int64_t row = 0; row < problem.tokens(); ++row) {
    results.delta[static_cast<std::size_t>(row)] =
        static_cast<double>(dot(results.out, row, problem.dout, row, problem.dim_v));
    results.delta_magnitude[static_cast<std::size_t>(row)] =
        std::max(std::abs(results.delta[static_cast<std::size_t>(row)]),
                 static_cast<double>(norm_of_terms(results.out, row, problem.dout, row, problem.dim_v)));
  }
  chunks([&](std::span<const std::int64_t> keys) {
    const std::int64_t at = keys.front() * problem.dim_qk;
    fold_reference_gradient(
        head, queries,
        {problem.dout.data(), results.lse.data(), results.delta.data(), results.delta_magnitude.data()},
        keys_from(problem, keys),
        {.dq = results.dq.data(),
         .dq_magnitude = results.dq_magnitude.data(),
         .dk = results.dk.data() + at,
         .dk_magnitude = results.dk_magnitude.data() + at,
         .dv = results.dv.data() + keys.front() * problem.dim_v,
         .dv_magnitude = results.dv_magnitude.data() + keys.front() * problem.dim_v});
  });
  return results;
}

double relative_error(const Doubles& actual, const Doubles& expected) {
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (actual[i] == expected[i]) {
      norm += std::isinf(expected[i]) ? 0 : expected[i] * expected[i];
      continue;
    }
    difference += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return difference == 0 ? 0 : std::sqrt(difference / norm);
}

void expect_equal(const Results& actual, const Results& expected, double tolerance) {
  EXPECT_LT(relative_error(actual.out, expected.out), tolerance);
  EXPECT_LT(relative_error(actual.lse, expected.lse), tolerance);
  EXPECT_LT(relative_error(actual.dq, expected.dq), tolerance);
  EXPECT_LT(relative_error(actual.dk, expected.dk), tolerance);
  EXPECT_LT(relative_error(actual.dv, expected.dv), tolerance);
  EXPECT_LT(relative_error(actual.dq_magnitude, expected.dq_magnitude), tolerance);
  EXPECT_LT(relative_error(actual.dk_magnitude, expected.dk_magnitude), tolerance);
  EXPECT_LT(relative_error(actual.dv_magnitude, expected.dv_magnitude), tolerance);
}

TEST(ReferenceAttention, AgreesWithTheDefinition) {
  const std::vector<Offsets> documents{
      {0, 1}, {0, 5}, {0, 300}, {0, 130, 130, 133, 290}, {0, 0, 64, 200, 201}};
  for (const Offsets& offsets : documents) {
    for (const bool causal : {false, true}) {
      for (const auto& [dim_qk, dim_v] : {std::pair<std::int64_t, std::int64_t>{8, 8}, {24, 40}, {264, 16}}) {
        Problem problem{.offsets = offsets, .causal = causal, .dim_qk = dim_qk, .dim_v = dim_v};
        problem.softmax_scale = 1.0 / std::sqrt(static_cast<double>(dim_qk));
        fill_normal(problem, 12, 1.7);
        const Results expected = naive(problem);
        SCOPED_TRACE(testing::Message()
                     << "tokens " << problem.tokens() << " documents " << offsets.size() - 1 << " causal "
                     << causal << " dims " << dim_qk << ", " << dim_v);
        expect_equal(reference(problem, problem.tokens()), expected, 2e-14);
        expect_equal(reference(problem, 37), expected, 2e-14);
      }
    }
  }
}

TEST(ReferenceAttention, GradientIsThatOfFiniteDifferences) {
  Problem problem{.offsets = {0, 7, 12}, .causal = true, .dim_qk = 8, .dim_v = 8, .softmax_scale = 0.5};
  fill_normal(problem, 13);
  const Results results = reference(problem, 5);
  const auto loss = [&problem] {
    const Results shifted = naive(problem);
    return std::inner_product(shifted.out.begin(), shifted.out.end(), problem.dout.begin(), 0.0);
  };
  const auto check = [&](Doubles& input, const Doubles& gradient) {
    constexpr double step = 1e-5;
    for (std::size_t i = 0; i < input.size(); ++i) {
      const double value = input[i];
      input[i] = value + step;
      const double above = loss();
      input[i] = value - step;
      const double below = loss();
      input[i] = value;
      ASSERT_NEAR(gradient[i], (above - below) / (2 * step), 1e-8);
    }
  };
  check(problem.q, results.dq);
  check(problem.k, results.dk);
  check(problem.v, results.dv);
}

TEST(ReferenceAttention, ScatteredRowsAndKeysGiveTheSameAsTheWhole) {
  Problem problem{.offsets = {0, 90, 260}, .causal = true, .dim_qk = 16, .dim_v = 24};
  fill_normal(problem, 14);
  const Results expected = naive(problem);
  const std::vector<std::int64_t> chosen{0, 1, 50, 89, 90, 91, 177, 258, 259};
  const auto chosen_rows = [&](const Doubles& tensor, std::int64_t dim) {
    Doubles rows;
    for (const std::int64_t row : chosen) {
      rows.insert(rows.end(), tensor.begin() + row * dim, tensor.begin() + (row + 1) * dim);
    }
    return rows;
  };
  const AttentionMask mask = problem.mask();
  const ReferenceHead head = head_of(problem, mask);
  const std::vector<std::int64_t> all = first_positions(problem.tokens());
  const Doubles q = chosen_rows(problem.q, 16);
  const Doubles dout = chosen_rows(problem.dout, 24);
  const Doubles k = chosen_rows(problem.k, 16);
  const Doubles v = chosen_rows(problem.v, 24);

  Doubles out(chosen.size() * 24);
  Doubles lse(chosen.size(), -infinity);
  fold_reference_attention(head, {chosen, q.data()}, keys_from(problem, all), {out.data(), lse.data()});
  EXPECT_LT(relative_error(out, chosen_rows(expected.out, 24)), 1e-14);
  EXPECT_LT(relative_error(lse, chosen_rows(expected.lse, 1)), 1e-14);

  const Doubles delta = chosen_rows(expected.delta, 1);
  Doubles dq(chosen.size() * 16);
  fold_reference_gradient(head, {chosen, q.data()}, {dout.data(), lse.data(), delta.data()},
                          keys_from(problem, all), {.dq = dq.data()});
  EXPECT_LT(relative_error(dq, chosen_rows(expected.dq, 16)), 1e-14);

  Doubles dk(chosen.size() * 16);
  Doubles dv(chosen.size() * 24);
  fold_reference_gradient(head, {all, problem.q.data()},
                          {problem.dout.data(), expected.lse.data(), expected.delta.data()},
                          {chosen, k.data(), v.data()}, {.dk = dk.data(), .dv = dv.data()});
  EXPECT_LT(relative_error(dk, chosen_rows(expected.dk, 16)), 1e-14);
  EXPECT_LT(relative_error(dv, chosen_rows(expected.dv, 24)), 1e-14);
}

TEST(ReferenceAttention, RowsThatSeeNothingStayAsTheyWere) {
  Problem problem{.offsets = {0, 10}, .dim_qk = 8, .dim_v = 8};
  fill_normal(problem, 15);
  const AttentionMask mask = problem.mask();
  const std::vector<std::int64_t> outside{10, 11, 12};  // no query of the mask
  const std::vector<std::int64_t> all = first_positions(10);
  Doubles out(3 * 8);
  Doubles lse(3, -infinity);
  const ReferenceHead head = head_of(problem, mask);
  fold_reference_attention(head, {outside, problem.q.data()}, keys_from(problem, all),
                           {out.data(), lse.data()});
  EXPECT_THAT(out, testing::Each(0.0));
  EXPECT_THAT(lse, testing::Each(-infinity));

  // Keys before a causal query's document show nothing either, and lse = -inf contributes no gradient.
  const std::vector<std::int64_t> inside{0, 1, 2};
  Doubles dq(3 * 8);
  Doubles dk(10 * 8);
  const Doubles delta(3, 1.0);
  fold_reference_gradient(head, {inside, problem.q.data()}, {problem.dout.data(), lse.data(), delta.data()},
                          keys_from(problem, all), {.dq = dq.data(), .dk = dk.data()});
  EXPECT_THAT(dq, testing::Each(0.0));
  EXPECT_THAT(dk, testing::Each(0.0));
}

TEST(ReferenceAttention, ScoresFarApartAndFarFromZero) {
  for (const double size : {200.0, 1e5}) {
    Problem problem{.offsets = {0, 150}, .causal = true, .dim_qk = 8, .dim_v = 8, .softmax_scale = 1.0};
    fill_normal(problem, 16);
    for (std::size_t i = 0; i < problem.q.size(); ++i) {
      problem.q[i] = i % 8 == 0 ? -size : 0.1 * problem.q[i];
      problem.k[i] = i % 8 == 0 ? (size > 1e4 ? 1.0 : problem.k[i]) : problem.k[i];
    }
    const Results expected = naive(problem);
    const Results actual = reference(problem, 20);
    EXPECT_LT(relative_error(actual.out, expected.out), 1e-10);
    EXPECT_LT(relative_error(actual.lse, expected.lse), 1e-14);
    EXPECT_LT(relative_error(actual.dv, expected.dv), 1e-10);
    EXPECT_LT(relative_error(actual.dq, expected.dq), 1e-9);
  }
}

TEST(ReferenceAttention, FirstChunksMayHoldOnlyHiddenKeys) {
  Problem problem{.offsets = {0, 200, 400}, .causal = true, .dim_qk = 8, .dim_v = 8};
  fill_normal(problem, 17);
  expect_equal(reference(problem, 10), naive(problem), 2e-14);
}

}  // namespace
}  // namespace hcp
