/// The same bits whatever the timing, the threads and the spelling of a scheme. Rings of three and more use
/// their buffers again; the schemes of three levels are those on 8 ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "tests/attention/attention_case.hpp"

namespace hcp {
namespace {

struct Bits {
  std::vector<std::vector<std::byte>> tensors;
  std::vector<float> dsinks, max_logits;
  friend bool operator==(const Bits&, const Bits&) = default;
};

class SameBits : public testing::Test {
 protected:
  const MpiCommunicator comm_ = MpiCommunicator::duplicate(MPI_COMM_WORLD);
  const Problem problem_{.mask = {.kind = test::MaskKind::causal, .doc_lengths = {67, 20, 0, 43}},
                         .heads_q = 8,
                         .heads_kv = 2,
                         .dim_qk = 16,
                         .dim_v = 8,
                         .sinks = {0.0F, 1.0F, -2.0F, 3.0F, 0.5F, -0.5F, -9.0F, 2.0F},
                         .dropout = {.probability = 0.1, .seed = 5, .query_offsets = {}, .key_offsets = {}}};
  const Answer answer_ = solve(problem_, comm_);

  [[nodiscard]] Bits bits_of(const Setting& setting) const { return bits_of(problem_, answer_, setting); }
  /// @param collectives  goes up by those of forward
  [[nodiscard]] Bits bits_of(const Problem& problem, const Answer& answer, const Setting& setting,
                             std::int64_t* collectives = nullptr) const {
    LocalResult result = run_case(problem, setting, answer, comm_);
    if (collectives != nullptr) {
      *collectives +=
          std::ranges::count(result.plan.forward.transfers, Collective::all_gather, &Transfer::collective);
    }
    return {std::move(result.tensors), std::move(result.dsinks), std::move(result.max_logits)};
  }
};

TEST_F(SameBits, AgainAndWithMoreThreads) {
  for (const auto& levels : schemes_on(comm_.size())) {
    Setting setting{.levels = levels, .delay_seed = {}};
    SCOPED_TRACE(setting.describe());
    const Bits once = bits_of(setting);
    EXPECT_EQ(once, bits_of(setting));
    setting.threads = 2;
    EXPECT_EQ(once, bits_of(setting));
  }
}

TEST_F(SameBits, WhateverTheDelays) {
  for (const auto& levels : schemes_on(comm_.size())) {
    Setting setting{.levels = levels, .delay_seed = {}};
    SCOPED_TRACE(setting.describe());
    const Bits prompt = bits_of(setting);
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      setting.delay_seed = seed;
      ASSERT_EQ(prompt, bits_of(setting)) << "seed " << seed;
    }
  }
}

TEST_F(SameBits, WhateverTheFormOfMessages) {
  // Where every rank takes equal blocks whole, all-gathers are collectives.
  const Problem even{
      .mask = {.kind = test::MaskKind::no_mask, .doc_lengths = {96, 48}}, .heads_q = 8, .heads_kv = 2};
  const Answer even_answer = random_input(even);
  std::int64_t collectives = 0;
  for (const auto& levels : schemes_on(comm_.size())) {
    for (const Partition partition : {Partition::zigzag, Partition::striped}) {
      Setting setting{.levels = levels, .partition = partition, .delay_seed = {}};
      SCOPED_TRACE(setting.describe());
      const Bits uneven_bits = bits_of(setting);
      const Bits even_bits = bits_of(even, even_answer, setting);
      for (const MessageForm form : {MessageForm::contiguous, MessageForm::collectives}) {
        setting.message_form = form;
        setting.delay_seed = 3;
        EXPECT_EQ(uneven_bits, bits_of(setting)) << name_of(form);
        EXPECT_EQ(even_bits, bits_of(even, even_answer, setting, &collectives)) << name_of(form);
      }
    }
  }
  EXPECT_GT(collectives, 0);
}

TEST_F(SameBits, JoinedHeadSwapsAreOneHeadSwap) {
  const int half = comm_.size() / 2;
  const Setting joined{.levels = {{Algorithm::a2a, 2}, {Algorithm::a2a, half}}, .delay_seed = {}};
  const Setting flat{.levels = {{Algorithm::a2a, comm_.size()}}, .delay_seed = {}};
  EXPECT_EQ(bits_of(joined), bits_of(flat));
}

}  // namespace
}  // namespace hcp
