/// The host kernel against attention by its definition: shapes, heads, masks, splits, instruction sets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/attention_kernel.hpp"
#include "kernels/cpu/cpu_isa.hpp"
#include "tests/kernels/attention_run.hpp"
#include "tests/kernels/cpu_isas.hpp"
#include "tests/kernels/dense_attention.hpp"

namespace hcp::test {
namespace {

void expect_exact(const AttentionCase& setup, const BlockSplit& split) {
  const Operands operands = random_operands(setup, 7);
  const DenseAttention reference = dense_attention(setup, operands);
  for (const std::string& isa : available_isas()) {
    SCOPED_TRACE(isa);
    const double tolerance = kernel_tolerance(isa, setup.type);
    const SelectedIsa selected{isa};
    const AttentionRun run = run_attention(*make_cpu_attention_kernel(2), setup, operands, split);
    EXPECT_LE(relative_error(run.out, reference.out), tolerance);
    EXPECT_LE(relative_error(run.lse, reference.lse), tolerance);
    EXPECT_LE(relative_error(run.dq, reference.dq), tolerance);
    EXPECT_LE(relative_error(run.dk, reference.dk), tolerance);
    EXPECT_LE(relative_error(run.dv, reference.dv), tolerance);
  }
}

void expect_exact(const AttentionCase& setup) {
  expect_exact(setup, whole(setup));
}

TEST(CpuIsa, PortableIsAlwaysThere) {
  EXPECT_THAT(available_isas(), ::testing::Contains("portable"));
}

TEST(CpuIsa, AnUnknownNameIsRefusedWithTheAllowedOnes) {
  const SelectedIsa selected{"sse9"};
  try {
    static_cast<void>(make_cpu_attention_kernel(1));
    FAIL() << "HCP_CPU_ISA=sse9 was accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(),
                ::testing::AllOf(::testing::HasSubstr("sse9"), ::testing::HasSubstr("portable")));
  }
}

TEST(CpuAttention, EveryHeadDim) {
  for (std::int64_t dim = 8; dim <= 256; dim += 8) {
    SCOPED_TRACE(dim);
    expect_exact({.doc_lengths = {101}, .causal = true, .dim_qk = dim, .dim_v = dim});
  }
}

TEST(CpuAttention, HeadDimsOfQueriesAndValuesMayDiffer) {
  for (const auto& [dim_qk, dim_v] : {std::pair{192, 128}, {8, 256}, {256, 8}, {40, 72}}) {
    SCOPED_TRACE(std::to_string(dim_qk) + " / " + std::to_string(dim_v));
    expect_exact({.doc_lengths = {150}, .dim_qk = dim_qk, .dim_v = dim_v});
  }
}

TEST(CpuAttention, EveryLengthAroundATile) {
  for (const std::int64_t length : {1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 95, 96, 97, 191, 192, 193, 300}) {
    for (const bool causal : {false, true}) {
      SCOPED_TRACE(std::to_string(length) + (causal ? " causal" : ""));
      expect_exact({.doc_lengths = {length}, .causal = causal, .dim_qk = 24, .dim_v = 24});
    }
  }
}

TEST(CpuAttention, QueryHeadsShareKvHeads) {
  expect_exact({.doc_lengths = {130}, .heads_q = 8, .heads_kv = 2, .heads = {0, 0, 4}});
  expect_exact({.doc_lengths = {130}, .causal = true, .heads_q = 6, .heads_kv = 1, .heads = {0, 0, 6}});
}

TEST(CpuAttention, ARankMayHoldAnyRunOfHeads) {
  // Of 28 query heads and 7 KV heads: 14..27 begin in the middle of KV head 3; 5..9 cut two KV heads.
  expect_exact({.doc_lengths = {110}, .causal = true, .heads_q = 14, .heads_kv = 4, .heads = {14, 3, 4}});
  expect_exact({.doc_lengths = {110}, .heads_q = 5, .heads_kv = 2, .heads = {5, 1, 4}});
}

TEST(CpuAttention, PackedDocumentsOfAnyLength) {
  const std::vector<std::int64_t> documents{0, 1, 40, 1, 0, 97, 3, 130, 1, 0};
  for (const bool causal : {false, true}) {
    const AttentionCase setup{.doc_lengths = documents, .causal = causal, .dim_qk = 40, .dim_v = 40};
    expect_exact(setup);
    expect_exact(setup, zigzag(setup, 3));
  }
}

TEST(CpuAttention, StorageTypes) {
  for (const DataType type : {DataType::bf16, DataType::fp16}) {
    SCOPED_TRACE(std::string{name_of(type)});
    expect_exact({.doc_lengths = {60, 140}, .causal = true, .dim_qk = 64, .dim_v = 64, .type = type});
    expect_exact({.doc_lengths = {200}, .dim_qk = 128, .dim_v = 72, .type = type});
    expect_exact({.doc_lengths = {1, 30, 0, 7, 95}, .causal = true, .dim_qk = 24, .dim_v = 40, .type = type});
    const AttentionCase odd{
        .doc_lengths = {131, 98}, .causal = true, .dim_qk = 32, .dim_v = 32, .type = type};
    expect_exact(odd, zigzag(odd, 3));
    expect_exact(odd, {ranges_of_lengths(229, {101, 1, 31}), ranges_of_lengths(229, {1, 7, 65, 3})});
  }
}

TEST(CpuAttention, SubnormalFp16ValuesAreReadExactly) {
  for (const float magnitude : {1e-7F, 1e-5F, 1e-4F}) {  // subnormal below 6.1e-5; q shows in dk
    expect_exact({.doc_lengths = {50}, .type = DataType::fp16, .q_magnitude = magnitude});
  }
}

TEST(CpuAttention, BlocksFoldedInAnyOrderAreTheWhole) {
  for (const bool causal : {false, true}) {
    const AttentionCase setup{.doc_lengths = {260, 1, 139}, .causal = causal, .dim_qk = 32, .dim_v = 48};
    BlockSplit split = zigzag(setup, 4);
    expect_exact(setup, split);
    split.keys = {split.keys[2], split.keys[0], split.keys[3], split.keys[1]};
    expect_exact(setup, split);
  }
}

TEST(CpuAttention, ShortAndLongKeyRangesAtAnyOffset) {
  const AttentionCase setup{.doc_lengths = {211, 102}, .causal = true, .dim_qk = 16, .dim_v = 16};
  expect_exact(setup, {ranges_of_lengths(313, {100, 1, 30}), ranges_of_lengths(313, {1, 7, 64, 2, 33})});
  // One block of every fifth range: its rows are adjacent, their positions are not.
  std::vector<PositionSet> combs(5);
  std::size_t i = 0;
  for (const PositionSet& range : ranges_of_lengths(313, {1, 9, 4})) {
    combs[i++ % 5].push_back(range.front());
  }
  expect_exact(setup, {combs, combs});
}

TEST(CpuAttention, LongSumsDoNotLosePrecision) {
  expect_exact({.doc_lengths = {3000}, .heads_q = 1, .heads_kv = 1, .dim_qk = 16, .dim_v = 16});
}

}  // namespace
}  // namespace hcp::test
