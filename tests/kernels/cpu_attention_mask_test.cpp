// The kernels under every mask, in blocks that cut it anywhere, against attention by its definition.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention_kernel.hpp"
#include "tests/kernels/attention_run.hpp"
#include "tests/kernels/cpu_isas.hpp"
#include "tests/kernels/dense_attention.hpp"
#include "tests/kernels/mask_definition.hpp"

namespace hcp::test {
namespace {

AttentionCase case_of(const MaskDefinition& definition, DataType type = DataType::fp32) {
  return {.heads_q = 4,
          .heads_kv = 2,
          .heads = {0, 0, 2},
          .dim_qk = 24,
          .dim_v = 16,
          .type = type,
          .any_mask = definition};
}

/// Whole, in zigzag shards, and in blocks of odd lengths.
std::vector<std::pair<std::string, BlockSplit>> splits_of(const AttentionCase& setup) {
  return {{"whole", whole(setup)},
          {"zigzag", zigzag(setup, 3)},
          {"odd",
           {ranges_of_lengths(setup.tokens(), {97, 1, 40}),
            ranges_of_lengths(setup.key_tokens(), {1, 75, 7, 33})}}};
}

/// Row `row` of a tensor of `rows` rows.
std::vector<float> row_of(const std::vector<float>& tensor, std::size_t rows, std::size_t row) {
  const std::size_t elements = tensor.size() / rows;
  const auto begin = tensor.begin() + static_cast<std::ptrdiff_t>(row * elements);
  return {begin, begin + static_cast<std::ptrdiff_t>(elements)};
}

/// Rows that see nothing give out 0, lse -inf and dq 0, keys that nobody sees give dk and dv 0; all exactly.
void expect_unseen_rows_exact(const MaskDefinition& definition, const AttentionRun& run) {
  const std::vector<std::vector<bool>> mask = definition.dense();
  const auto queries = static_cast<std::size_t>(definition.queries());
  const auto keys = static_cast<std::size_t>(definition.keys());
  for (std::size_t query = 0; query < queries; ++query) {
    if (std::ranges::find(mask[query], true) == mask[query].end()) {
      EXPECT_THAT(row_of(run.out, queries, query), ::testing::Each(0.0F)) << "out of query " << query;
      EXPECT_THAT(row_of(run.dq, queries, query), ::testing::Each(0.0F)) << "dq of query " << query;
      EXPECT_THAT(row_of(run.lse, queries, query), ::testing::Each(-std::numeric_limits<float>::infinity()))
          << "lse of query " << query;
    }
  }
  for (std::size_t key = 0; key < keys; ++key) {
    if (std::ranges::none_of(mask, [&](const std::vector<bool>& row) { return row[key]; })) {
      EXPECT_THAT(row_of(run.dk, keys, key), ::testing::Each(0.0F)) << "dk of key " << key;
      EXPECT_THAT(row_of(run.dv, keys, key), ::testing::Each(0.0F)) << "dv of key " << key;
    }
  }
}

void expect_exact(AttentionKernel& kernel, const AttentionCase& setup, const Operands& operands,
                  const DenseAttention& reference, double tolerance) {
  for (const auto& [name, split] : splits_of(setup)) {
    SCOPED_TRACE(name);
    const AttentionRun run = run_attention(kernel, setup, operands, split);
    EXPECT_LE(relative_error(run.out, reference.out), tolerance);
    EXPECT_LE(relative_error(run.lse, reference.lse), tolerance);
    EXPECT_LE(relative_error(run.dq, reference.dq), tolerance);
    EXPECT_LE(relative_error(run.dk, reference.dk), tolerance);
    EXPECT_LE(relative_error(run.dv, reference.dv), tolerance);
    expect_unseen_rows_exact(*setup.any_mask, run);
  }
}

void expect_exact_everywhere(const AttentionCase& setup) {
  SCOPED_TRACE(text_of(*setup.any_mask));
  const Operands operands = random_operands(setup, 11);
  const DenseAttention reference = dense_attention(setup, operands);
  for (const std::string& isa : available_isas()) {
    SCOPED_TRACE(isa);
    const SelectedIsa selected{isa};
    expect_exact(*make_cpu_attention_kernel(2), setup, operands, reference,
                 kernel_tolerance(isa, setup.type));
  }
  SCOPED_TRACE("reference kernel");
  expect_exact(*make_reference_attention_kernel(), setup, operands, reference, 2e-6);
}

class KernelUnderMask : public ::testing::TestWithParam<MaskKind> {};

INSTANTIATE_TEST_SUITE_P(Attention, KernelUnderMask, ::testing::ValuesIn(all_mask_kinds),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(KernelUnderMask, IsExactForRandomDocuments) {
  std::mt19937 random{static_cast<unsigned>(GetParam()) + 201};
  for (int trial = 0; trial < 4; ++trial) {
    expect_exact_everywhere(case_of(random_definition(GetParam(), random, 4, 130)));
  }
}

TEST_P(KernelUnderMask, IsExactFromBf16) {
  std::mt19937 random{static_cast<unsigned>(GetParam()) + 301};
  expect_exact_everywhere(case_of(random_definition(GetParam(), random, 4, 130), DataType::bf16));
}

TEST(KernelUnderChosenMask, QueriesWithoutKeysAndKeysWithoutQueries) {
  expect_exact_everywhere(case_of({.kind = MaskKind::causal_bottom_right,
                                   .doc_lengths = {70, 0, 31, 9},
                                   .kv_doc_lengths = {20, 13, 0, 90}}));
  expect_exact_everywhere(case_of({.kind = MaskKind::sliding_window,
                                   .doc_lengths = {150, 20},
                                   .kv_doc_lengths = {40, 160},
                                   .window = {9, 3}}));
}

TEST(KernelUnderChosenMask, PaddingIsExactZero) {
  for (const MaskKind kind : {MaskKind::padding, MaskKind::padding_causal}) {
    expect_exact_everywhere(
        case_of({.kind = kind, .doc_lengths = {100, 64, 7}, .special_lengths = {37, 0, 7}}));
  }
}

TEST(KernelUnderChosenMask, BlockDiffusionSeesTwoIntervals) {
  for (const std::int64_t block_size : {1, 32, 200}) {
    expect_exact_everywhere(
        case_of({.kind = MaskKind::block_diffusion, .doc_lengths = {250, 2, 66}, .block_size = block_size}));
  }
}

}  // namespace
}  // namespace hcp::test
