/// Dropout, sinks with their gradients and the largest logits under every scheme, partition and number of
/// ranks: the same elements drop, so every result is that of dense fp64 arithmetic on the whole problem.
#include <gtest/gtest.h>

#include <stdexcept>

#include "tests/attention/attention_case.hpp"

namespace hcp {
namespace {

std::vector<std::vector<Level>> some_schemes() {
  constexpr auto p2p = Algorithm::p2p;
  constexpr auto a2a = Algorithm::a2a;
  constexpr auto all_gather = Algorithm::all_gather;
  return {{},
          {{p2p, 4}},
          {{all_gather, 3}},
          {{a2a, 4}},
          {{p2p, 2}, {a2a, 3}},
          {{a2a, 2}, {p2p, 2}},
          {{all_gather, 2}, {p2p, 2}},
          {{a2a, 2}, {p2p, 2}, {all_gather, 2}}};
}

void expect_exact(const Problem& problem) {
  const Answer answer = solve(problem);
  for (const std::vector<Level>& levels : some_schemes()) {
    for (const Partition partition : all_partitions) {
      const Setting setting{.levels = levels, .partition = partition, .delay_seed = {}};
      SCOPED_TRACE(setting.describe());
      const std::vector<LocalResult> results = run_case_on_threads(problem, setting, answer);
      CaseErrors errors = errors_of(answer, head_terms(results));
      for (const LocalResult& result : results) {
        errors.include(errors_of(problem, answer, result));
      }
      EXPECT_LE(errors.worst, 2e-6) << errors.where;
    }
  }
}

const std::vector<float> six_sinks{0.0F, 1.5F, -2.0F, 4.0F, 0.3F, -12.0F};

TEST(SoftmaxTerms, OfEveryScheme) {
  expect_exact({.mask = {.kind = test::MaskKind::causal, .doc_lengths = {70, 0, 23, 70, 0, 23}},
                .heads_q = 6,
                .heads_kv = 3,
                .dim_qk = 16,
                .dim_v = 24,
                .sinks = six_sinks,
                .softmax_scale = 0.4F,
                .dropout = {.probability = 0.2,
                            .seed = 42,
                            .layer = 2,
                            .first_head = 6,
                            .query_offsets = {},
                            .key_offsets = {},
                            .documents_per_row = 3}});
}

TEST(SoftmaxTerms, OfRanksWithoutRows) {
  expect_exact({.mask = {.doc_lengths = {3, 2}}, .heads_q = 6, .heads_kv = 6, .sinks = six_sinks});
}

TEST(SoftmaxTerms, OfOtherKeysThanQueries) {
  expect_exact({.mask = {.kind = test::MaskKind::causal_bottom_right,
                         .doc_lengths = {50, 0, 31},
                         .kv_doc_lengths = {120, 5, 77}},
                .heads_q = 6,
                .heads_kv = 2,
                .sinks = six_sinks,
                .dropout = {.probability = 0.5, .query_offsets = {}, .key_offsets = {}}});
}

TEST(SoftmaxTerms, ThatDoNotCoverTheHeadsAreRefused) {
  Problem problem{.mask = {.doc_lengths = {64}}, .heads_q = 6, .heads_kv = 6};
  const Answer input = random_input(problem);
  problem.sinks = {0.0F, 1.0F};
  EXPECT_THROW(static_cast<void>(run_case_on_threads(problem, {.levels = {}, .delay_seed = {}}, input)),
               std::invalid_argument);
}

}  // namespace
}  // namespace hcp
