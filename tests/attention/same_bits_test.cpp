/// The same bits whatever the timing, the threads and the spelling of a scheme.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/attention/attention_case.hpp"

namespace hcp {
namespace {

class SameBits : public testing::Test {
 protected:
  const MpiCommunicator comm_ = MpiCommunicator::duplicate(MPI_COMM_WORLD);
  const Problem problem_{
      .documents = {137, 41, 0, 89}, .causal = true, .heads_q = 8, .heads_kv = 2, .dim_qk = 16, .dim_v = 8};
  const Answer answer_ = solve(problem_, comm_);
};

TEST_F(SameBits, AgainAndWithMoreThreads) {
  for (const auto& levels : schemes_on(comm_.size())) {
    Setting setting{.levels = levels, .delay_seed = {}};
    SCOPED_TRACE(setting.describe());
    const auto once = run_case(problem_, setting, answer_, comm_).tensors;
    EXPECT_EQ(once, run_case(problem_, setting, answer_, comm_).tensors);
    setting.threads = 2;
    EXPECT_EQ(once, run_case(problem_, setting, answer_, comm_).tensors);
  }
}

TEST_F(SameBits, WhateverTheDelays) {
  for (const auto& levels : schemes_on(comm_.size())) {
    Setting setting{.levels = levels, .delay_seed = {}};
    SCOPED_TRACE(setting.describe());
    const auto prompt = run_case(problem_, setting, answer_, comm_).tensors;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      setting.delay_seed = seed;
      ASSERT_EQ(prompt, run_case(problem_, setting, answer_, comm_).tensors) << "seed " << seed;
    }
  }
}

TEST_F(SameBits, JoinedHeadSwapsAreOneHeadSwap) {
  const Setting joined{.levels = {{Algorithm::a2a, 2}, {Algorithm::a2a, 2}}, .delay_seed = {}};
  const Setting flat{.levels = {{Algorithm::a2a, 4}}, .delay_seed = {}};
  EXPECT_EQ(run_case(problem_, joined, answer_, comm_).tensors,
            run_case(problem_, flat, answer_, comm_).tensors);
}

TEST_F(SameBits, LevelsOfOneRankVanish) {
  const int ranks = comm_.size();
  for (const Algorithm inner : {Algorithm::p2p, Algorithm::all_gather, Algorithm::a2a}) {
    for (const Algorithm outer : {Algorithm::p2p, Algorithm::all_gather, Algorithm::a2a}) {
      for (const bool inner_vanishes : {true, false}) {
        const std::vector<int> sizes = inner_vanishes ? std::vector{1, ranks} : std::vector{ranks, 1};
        const ResolvedScheme resolved = resolve_scheme({inner, outer}, ranks, sizes, {});
        const Setting pair{.levels = resolved.effective.levels, .delay_seed = {}};
        const Setting single{.levels = {{inner_vanishes ? outer : inner, ranks}}, .delay_seed = {}};
        EXPECT_EQ(run_case(problem_, pair, answer_, comm_).tensors,
                  run_case(problem_, single, answer_, comm_).tensors);
      }
    }
  }
}

}  // namespace
}  // namespace hcp
