/// The same bits whatever the timing, the threads and the spelling of a scheme. Rings of three and more use
/// their buffers again; the schemes of three levels are those on 8 ranks.
#include <gtest/gtest.h>

#include "tests/attention/attention_case.hpp"

namespace hcp {
namespace {

class SameBits : public testing::Test {
 protected:
  const MpiCommunicator comm_ = MpiCommunicator::duplicate(MPI_COMM_WORLD);
  const Problem problem_{.mask = {.kind = test::MaskKind::causal, .doc_lengths = {67, 20, 0, 43}},
                         .heads_q = 8,
                         .heads_kv = 2,
                         .dim_qk = 16,
                         .dim_v = 8};
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
  const int half = comm_.size() / 2;
  const Setting joined{.levels = {{Algorithm::a2a, 2}, {Algorithm::a2a, half}}, .delay_seed = {}};
  const Setting flat{.levels = {{Algorithm::a2a, comm_.size()}}, .delay_seed = {}};
  EXPECT_EQ(run_case(problem_, joined, answer_, comm_).tensors,
            run_case(problem_, flat, answer_, comm_).tensors);
}

}  // namespace
}  // namespace hcp
