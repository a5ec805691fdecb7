/// The kernels of attention on devices against attention by its definition: masks, heads, tails, head dims,
/// types, blocks of queries and keys, dropout, sinks; forward and backward.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/kernels/cuda/attention_checks.hpp"
#include "tests/kernels/cuda/kernel_under_test.hpp"

namespace hcp::test {
namespace {

class AttentionKernels : public testing::TestWithParam<DataType> {
 protected:
  void expect_exact(const SoftmaxCase& setup, const BlockSplit& split) {
    test::expect_exact(*kernel_, setup, split);
  }
  void expect_exact(const AttentionCase& attention, const BlockSplit& split) {
    expect_exact(SoftmaxCase{.attention = attention}, split);
  }
  void expect_exact(const AttentionCase& attention) { expect_exact(attention, whole(attention)); }

 private:
  std::unique_ptr<AttentionKernel> kernel_ = make_kernel_under_test();
};
INSTANTIATE_TEST_SUITE_P(Types, AttentionKernels,
                         testing::Values(DataType::fp32, DataType::bf16, DataType::fp16),
                         [](const auto& info) { return std::string{name_of(info.param)}; });

TEST_P(AttentionKernels, EveryMask) {
  std::mt19937 random{5};
  for (const MaskKind kind : all_mask_kinds) {
    SCOPED_TRACE(name_of(kind));
    AttentionCase attention{.dim_qk = 16, .dim_v = 16, .type = GetParam()};
    attention.any_mask = random_definition(kind, random, 4, 90);
    SCOPED_TRACE(text_of(*attention.any_mask));
    expect_exact(attention);
  }
}

/// With gaps within tiles and across their borders.
TEST_P(AttentionKernels, TwoIntervalsOfKeys) {
  MaskDefinition definition{.kind = MaskKind::intervals, .doc_lengths = {150}};
  for (std::int64_t query = 0; query < 150; ++query) {
    const std::int64_t gap = 5 + query % 70;
    definition.intervals.insert(definition.intervals.end(),
                                {query % 7, gap, gap + 1 + query % 3, std::min<std::int64_t>(150, gap + 66)});
  }
  AttentionCase attention{.heads_q = 1, .heads_kv = 1, .type = GetParam()};
  attention.any_mask = definition;
  expect_exact(attention);
  expect_exact(attention, zigzag(attention, 2));
}

TEST_P(AttentionKernels, FullVisitsBesidePartialOnes) {
  expect_exact({.doc_lengths = {330}, .causal = true, .heads_q = 1, .heads_kv = 1, .type = GetParam()});
}

TEST_P(AttentionKernels, LengthsAroundATile) {
  for (const std::int64_t length : {1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 193}) {
    SCOPED_TRACE(length);
    expect_exact({.doc_lengths = {length}, .heads_q = 1, .heads_kv = 1, .type = GetParam()});
  }
}

TEST_P(AttentionKernels, HeadDims) {
  struct Dims {
    std::int64_t qk;
    std::int64_t v;
  };
  for (const Dims dims : {Dims{8, 8}, Dims{64, 64}, Dims{72, 40}, Dims{40, 72}, Dims{128, 128}, Dims{136, 8},
                          Dims{192, 128}, Dims{8, 136}, Dims{200, 64}, Dims{256, 256}, Dims{24, 40},
                          Dims{16, 72}, Dims{120, 24}, Dims{184, 48}, Dims{24, 136}, Dims{232, 32}}) {
    SCOPED_TRACE(std::to_string(dims.qk) + " / " + std::to_string(dims.v));
    expect_exact({.doc_lengths = {70, 65},
                  .causal = true,
                  .heads_q = 1,
                  .heads_kv = 1,
                  .dim_qk = dims.qk,
                  .dim_v = dims.v,
                  .type = GetParam()});
  }
}

TEST_P(AttentionKernels, HeadsOfAnyRank) {
  struct Heads {
    std::int64_t q;
    std::int64_t kv;
    HeadMap map;
  };
  // Of 28 query heads and 7 KV heads: 14 .. 18 begin in the middle of KV head 3. KV heads that no query head
  // of the rank uses are there, too.
  for (const Heads& heads : {Heads{4, 1, {0, 0, 4}}, Heads{5, 3, {0, 0, 4}}, Heads{5, 3, {5, 1, 4}},
                             Heads{5, 3, {7, 1, 4}}, Heads{5, 2, {14, 3, 4}}}) {
    SCOPED_TRACE(std::to_string(heads.map.first_query_head) + " of " + std::to_string(heads.q));
    expect_exact({.doc_lengths = {70},
                  .causal = true,
                  .heads_q = heads.q,
                  .heads_kv = heads.kv,
                  .heads = heads.map,
                  .dim_qk = 24,
                  .type = GetParam()});
  }
}

TEST_P(AttentionKernels, BlocksOfQueriesAndKeysOneAfterAnother) {
  for (const bool causal : {false, true}) {
    const AttentionCase attention{.doc_lengths = {150, 1, 61},
                                  .causal = causal,
                                  .heads_q = 1,
                                  .heads_kv = 1,
                                  .dim_v = 40,
                                  .type = GetParam()};
    for (const BlockSplit& split : splits_of(attention)) {
      expect_exact(attention, split);
    }
  }
}

TEST_P(AttentionKernels, Dropout) {
  const SoftmaxCase setup{.attention = {.doc_lengths = {90, 0, 37, 60, 0, 37},
                                        .causal = true,
                                        .heads_q = 3,
                                        .heads_kv = 2,
                                        .heads = {5, 1, 4},
                                        .type = GetParam()},
                          .documents_per_row = 3,
                          .dropout = 0.4,
                          .seed = 0xfedc'ba98'7654'3210,
                          .layer = 3,
                          .first_head = 28};
  for (const BlockSplit& split : splits_of(setup.attention)) {
    expect_exact(setup, split);
  }
}

TEST_P(AttentionKernels, DropoutOfEveryHeadDimTile) {
  for (const std::int64_t dim : {128, 192, 256}) {
    SCOPED_TRACE(dim);
    expect_exact(SoftmaxCase{.attention = {.doc_lengths = {140},
                                           .heads_q = 1,
                                           .heads_kv = 1,
                                           .dim_qk = dim,
                                           .dim_v = dim == 192 ? 128 : dim,
                                           .type = GetParam()},
                             .dropout = 0.25},
                 {{{{0, 140}}}, {{{0, 33}, {40, 107}}, {{33, 40}, {107, 140}}}});
  }
}

TEST_P(AttentionKernels, Sinks) {
  const float infinity = std::numeric_limits<float>::infinity();
  const SoftmaxCase setup{.attention = {.doc_lengths = {130},
                                        .causal = true,
                                        .heads_q = 5,
                                        .heads_kv = 1,
                                        .heads = {0, 0, 5},
                                        .type = GetParam()},
                          .dropout = 0.1,
                          .sinks = {0.0F, 1.5F, -2.0F, 20.0F, -infinity}};
  expect_exact(setup, whole(setup.attention));
  expect_exact(setup, zigzag(setup.attention, 2));
}

}  // namespace
}  // namespace hcp::test
