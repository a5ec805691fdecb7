/// Inputs with which users of other codes found wrong results, through the whole exchange.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/attention/attention_case.hpp"

namespace hcp {
namespace {

TEST(UserFaults, LengthsThatNobodyElseTakesOnEightRanks) {
  const Problem problem{.mask = {.kind = test::MaskKind::causal, .doc_lengths = {137, 2041, 89}},
                        .heads_q = 2,
                        .heads_kv = 1,
                        .dim_qk = 8,
                        .dim_v = 8};
  const Answer answer = solve(problem);
  for (const std::vector<Level>& levels :
       std::vector<std::vector<Level>>{{{Algorithm::p2p, 8}}, {{Algorithm::p2p, 4}, {Algorithm::a2a, 2}}}) {
    for (const LocalResult& result :
         run_case_on_threads(problem, {.levels = levels, .delay_seed = {}}, answer)) {
      const CaseErrors errors = errors_of(problem, answer, result);
      EXPECT_LE(errors.worst, 2e-6) << errors.where;
    }
  }
}

TEST(UserFaults, FortyHeadsSwapOverFortyRanksWithEightKvHeads) {
  const Problem problem{.mask = {.kind = test::MaskKind::causal, .doc_lengths = {160}},
                        .heads_q = 40,
                        .heads_kv = 8,
                        .dim_qk = 8,
                        .dim_v = 8};
  const Answer answer = solve(problem);
  for (const LocalResult& result :
       run_case_on_threads(problem, {.levels = {{Algorithm::a2a, 40}}, .delay_seed = {}}, answer)) {
    const CaseErrors errors = errors_of(problem, answer, result);
    EXPECT_LE(errors.worst, 2e-6) << errors.where;
  }
}

/// Two KV blocks of four tokens on two ranks, each with one logit for all queries; values are random.
class TwoBlocks : public testing::Test {
 protected:
  static constexpr std::int64_t dim = 16;  // softmax scale 1/4, exact
  static constexpr std::int64_t heads = 2;
  const Problem problem_{
      .mask = {.doc_lengths = {8}}, .heads_q = heads, .heads_kv = heads, .dim_qk = dim, .dim_v = dim};

  [[nodiscard]] Answer with_logits(float first_block, float second_block) const {
    Answer input = random_input(problem_);
    for (std::int64_t token = 0; token < problem_.mask.queries(); ++token) {
      const float logit = token < 4 ? first_block : second_block;
      for (std::int64_t head = 0; head < heads; ++head) {
        const auto row = static_cast<std::size_t>((token * heads + head) * dim);
        std::fill_n(input.q.begin() + static_cast<std::ptrdiff_t>(row), dim, 0.0F);
        input.q[row] = 4.0F;  // times the scale: 1
        input.k[row] = logit;
      }
    }
    Answer answer = solve(problem_, std::move(input));
    for (auto* gradient : {&answer.dk, &answer.dv, &answer.dk_size, &answer.dv_size}) {
      std::ranges::replace_if(*gradient, is_below_fp32, 0.0);
    }
    return answer;
  }

  /// Weights of exp(-200) and what follows from them.
  static bool is_below_fp32(double value) {
    return std::abs(value) < static_cast<double>(std::numeric_limits<float>::min());
  }

  /// Every single scheme, every partition; each lse has to be `lse`.
  void expect_right(const Answer& answer, double lse, double lse_tolerance, double tolerance) {
    for (const double value : answer.lse) {
      ASSERT_NEAR(value, lse, 1e-6 * std::abs(lse)) << "of the reference";
    }
    for (const Algorithm algorithm : {Algorithm::p2p, Algorithm::all_gather, Algorithm::a2a}) {
      for (const Partition partition : all_partitions) {
        const Setting setting{.levels = {{algorithm, 2}}, .partition = partition, .delay_seed = {}};
        SCOPED_TRACE(setting.describe());
        for (const LocalResult& result : run_case_on_threads(problem_, setting, answer)) {
          const CaseErrors errors = errors_of(problem_, answer, result);
          EXPECT_LE(errors.worst, tolerance) << errors.where;
          const std::vector<std::byte>& computed = result.tensors[4];
          std::vector<float> values(computed.size() / sizeof(float));
          widen(DataType::fp32, computed.data(), values.data(), values.size());
          for (const float value : values) {
            EXPECT_NEAR(value, lse, lse_tolerance);
          }
        }
      }
    }
  }
};

TEST_F(TwoBlocks, ScoresThatDifferByTwoHundred) {
  // exp(200) overflows fp32: a merge must not compute it. All weight is on the block of 100.
  expect_right(with_logits(-100.0F, 100.0F), 100.0 + std::log(4.0), 1e-4, 2e-6);
  expect_right(with_logits(100.0F, -100.0F), 100.0 + std::log(4.0), 1e-4, 2e-6);
}

TEST_F(TwoBlocks, LogitsBelowAnyFiniteStandInForMinusInfinity) {
  // The logits of a block are equal, so that their rounding (unit 2^-7 at 1e5) does not matter.
  expect_right(with_logits(-1e5F, -1e5F), -1e5 + std::log(8.0), 2e-2, 2e-6);
  expect_right(with_logits(-1e5F, 0.0F), std::log(4.0), 1e-6, 2e-6);
}

TEST_F(TwoBlocks, PartitionFunctionsOfTwoAndEight) {
  // Four keys of 1/2 and four of 2. Merged as powers of two, the sum would not be 10.
  expect_right(with_logits(std::log(0.5F), std::log(2.0F)), std::log(10.0), 1e-6, 2e-6);
}

}  // namespace
}  // namespace hcp
