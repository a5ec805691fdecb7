// Verification of results that a dense attention in double made and that the test then spoils.

#include "src/job/verification.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <memory>
#include <stdexcept>
#include <utility>

#include "tests/job/verified_group.hpp"

namespace hcp::test {
namespace {

/// The gather of a rank that is the whole group.
std::vector<double> alone(std::span<const double> mine) {
  return {mine.begin(), mine.end()};
}

class Coverages : public testing::TestWithParam<Coverage> {};
INSTANTIATE_TEST_SUITE_P(Both, Coverages, testing::Values(Coverage::full, Coverage::sample),
                         [](const auto& info) { return info.param == Coverage::full ? "full" : "sample"; });

TEST_P(Coverages, RightResultsPassInEveryStorageType) {
  for (const DataType type : {DataType::fp32, DataType::bf16, DataType::fp16}) {
    const auto verdicts = verify(GetParam(), type);
    // One rounding to the storage type, and in a sample that of out inside delta.
    const double unit = type == DataType::fp32 ? 0x1p-24 : type == DataType::bf16 ? 0x1p-8 : 0x1p-11;
    for (const std::size_t rank : {0U, 1U}) {
      for (const VerifiedTensor tensor : {VerifiedTensor::out, VerifiedTensor::lse, VerifiedTensor::dq,
                                          VerifiedTensor::dk, VerifiedTensor::dv}) {
        EXPECT_LT(error_of(verdicts[rank], tensor), 2 * unit) << name_of(tensor) << " rank " << rank;
        EXPECT_LT(error_of(verdicts[rank], tensor), verification_tolerance(type));
      }
      EXPECT_GT(verdicts[rank].largest(), 0.0);
      EXPECT_FALSE(verdicts[rank].of(VerifiedTensor::stored_out).has_value());
    }
    EXPECT_EQ(verdicts[2].largest(), 0.0) << "no rows, nothing to check";
    EXPECT_FALSE(verdicts[2].of(VerifiedTensor::out).has_value());
    EXPECT_EQ(verdicts[2].worst(), "");
  }
}

TEST_P(Coverages, OneWrongElementOfEachTensorIsFound) {
  // The last row of rank 0 is among the sampled ones.
  const auto spoiled = [&](Stored Rank::*tensor) {
    return verify(GetParam(), DataType::fp32, [&](std::vector<Rank>& ranks) {
      Stored& spoilt = ranks[0].*tensor;
      spoilt.add(spoilt.rows - 1, spoilt.heads - 1, spoilt.dim - 1, 0.01);
    });
  };
  for (const auto& [tensor, member] : {std::pair{VerifiedTensor::out, &Rank::out},
                                       {VerifiedTensor::dq, &Rank::dq},
                                       {VerifiedTensor::dk, &Rank::dk},
                                       {VerifiedTensor::dv, &Rank::dv}}) {
    const auto verdicts = spoiled(member);
    EXPECT_GT(error_of(verdicts[0], tensor), 1e-4) << name_of(tensor);
    EXPECT_EQ(verdicts[0].worst(), std::string{name_of(tensor)} + " of tokens [250, 300)");
    EXPECT_LT(error_of(verdicts[1], tensor), 2e-6);
  }
}

TEST_P(Coverages, TheErrorIsTheRelativeNormOfTheChunk) {
  // dv of the whole chunk scaled by 1.001: |x - ref| is 0.001 |ref|, over |m| >= |ref|.
  const auto verdicts = verify(GetParam(), DataType::fp32, [](std::vector<Rank>& ranks) {
    Stored& out = ranks[1].out;
    for (std::int64_t i = 0; i < out.rows * out.heads * out.dim; ++i) {
      out.set(0, 0, i, 1.001 * out.get(0, 0, i));
    }
  });
  EXPECT_NEAR(error_of(verdicts[1], VerifiedTensor::out), 1e-3, 1e-6);
  EXPECT_EQ(verdicts[1].of(VerifiedTensor::out)->chunk, (PositionRange{75, 250}));
}

TEST_P(Coverages, NaNAndWrongInfinitiesAreInfiniteErrors) {
  auto verdicts = verify(GetParam(), DataType::fp32,
                         [](std::vector<Rank>& ranks) { ranks[1].dq.set(0, 0, 0, std::nan("")); });
  EXPECT_EQ(error_of(verdicts[1], VerifiedTensor::dq), infinity);
  EXPECT_EQ(verdicts[1].largest(), infinity);
  // lse of token 75, the first of rank 1, is held by rank 2 for query head 7.
  verdicts =
      verify(GetParam(), DataType::fp32, [](std::vector<Rank>& ranks) { ranks[2].lse[75] = -infinity; });
  EXPECT_EQ(error_of(verdicts[1], VerifiedTensor::lse), infinity);
  EXPECT_LT(error_of(verdicts[0], VerifiedTensor::lse), 2e-6);
}

TEST_P(Coverages, AWrongLseOfTheRunIsSeenByTheOwnerOfTheRows) {
  const auto verdicts =
      verify(GetParam(), DataType::fp32, [](std::vector<Rank>& ranks) { ranks[2].lse[0] += 0.1F; });
  EXPECT_GT(error_of(verdicts[0], VerifiedTensor::lse), 1e-3);
  EXPECT_LT(error_of(verdicts[1], VerifiedTensor::lse), 2e-6);
  if (GetParam() == Coverage::full) {
    EXPECT_LT(error_of(verdicts[0], VerifiedTensor::dv), 2e-6)
        << "the full reference takes nothing from the run";
  } else {
    EXPECT_GT(error_of(verdicts[0], VerifiedTensor::dv), 1e-5) << "the sample takes lse from the run";
  }
}

TEST_P(Coverages, LseThatNobodyHoldsIsAnInfiniteError) {
  const auto verdicts = verify(GetParam(), DataType::fp32, [](std::vector<Rank>& ranks) {
    ranks[2].results.lse_rows = {{0, 250}};
  });
  EXPECT_EQ(error_of(verdicts[0], VerifiedTensor::lse), infinity);
}

TEST_P(Coverages, ForwardAloneHasNoGradients) {
  const auto verdicts = verify(GetParam(), DataType::fp32, [](std::vector<Rank>& ranks) {
    for (Rank& rank : ranks) {
      rank.results.pass = PassSelection::forward;
      rank.results.dq = rank.results.dk = rank.results.dv = {};
    }
  });
  EXPECT_LT(error_of(verdicts[0], VerifiedTensor::out), 2e-6);
  EXPECT_FALSE(verdicts[0].of(VerifiedTensor::dq).has_value());
  EXPECT_FALSE(verdicts[0].of(VerifiedTensor::dk).has_value());
}

/// Synthetic values, and an out that is 1 everywhere.
class SourceWithOut final : public InputSource {
 public:
  void fill(InputTensor tensor, const PositionSet& rows, std::int64_t first_head, int layer,
            TensorView target) const override {
    if (tensor != InputTensor::out) {
      return synthetic_->fill(tensor, rows, first_head, layer, target);
    }
    const std::vector<float> ones(static_cast<std::size_t>(target.rows * target.row_elements()), 1.0F);
    round_to(target.type, ones.data(), target.data, ones.size());
  }
  [[nodiscard]] bool has_out() const override { return true; }

 private:
  std::unique_ptr<InputSource> synthetic_ = make_synthetic_input(21);
};

TEST(Verification, OutIsComparedWithTheStoredOne) {
  const AttentionMask mask = AttentionMask::causal(offsets);
  const SourceWithOut source;
  Stored out{DataType::fp32, tokens, query_heads.count, dim_v};
  for (std::int64_t i = 0; i < tokens * query_heads.count * dim_v; ++i) {
    out.set(0, 0, i, 1.25);
  }
  std::vector<float> lse(static_cast<std::size_t>(tokens * query_heads.count));
  LayerResults results{.mask = &mask,
                       .softmax_scale = scale,
                       .tokens = tokens,
                       .layer = 0,
                       .pass = PassSelection::forward,
                       .dtype = DataType::fp32,
                       .queries_per_kv = queries_per_kv,
                       .query_heads = query_heads,
                       .kv_heads = kv_heads,
                       .dim_qk = dim_qk,
                       .dim_v = dim_v,
                       .rows = {{0, tokens}},
                       .kv_rows = {{0, tokens}},
                       .out = out.view(),
                       .dq = {},
                       .dk = {},
                       .dv = {},
                       .lse_rows = {{0, tokens}},
                       .lse_heads = query_heads,
                       .lse = lse.data()};
  const VerificationResult result = verify_layer(results, source, Coverage::sample, alone, [] {});
  EXPECT_NEAR(error_of(result, VerifiedTensor::stored_out), 0.25, 1e-12);
}

/// A file that broke after the run had read it.
struct UnreadableSource final : InputSource {
  void fill(InputTensor, const PositionSet&, std::int64_t, int, TensorView) const override {
    throw std::invalid_argument{"unreadable"};
  }
  [[nodiscard]] bool has_out() const override { return false; }
};

TEST(Verification, UnreadableInputIsAnError) {
  const AttentionMask mask = AttentionMask::causal(offsets);
  Stored out{DataType::fp32, tokens, query_heads.count, dim_v};
  LayerResults results;
  results.mask = &mask;
  results.tokens = tokens;
  results.pass = PassSelection::forward;
  results.queries_per_kv = queries_per_kv;
  results.query_heads = query_heads;
  results.kv_heads = kv_heads;
  results.dim_qk = dim_qk;
  results.dim_v = dim_v;
  results.rows = {{0, tokens}};
  results.kv_rows = results.rows;
  results.out = out.view();
  EXPECT_THROW(static_cast<void>(verify_layer(results, UnreadableSource{}, Coverage::sample, alone, [] {})),
               std::invalid_argument);
}

TEST(Verification, FlopOfTheReference) {
  const ProblemShape shape{.seq_length = 100,
                           .micro_batch_size = 1,
                           .doc_lengths = {100},
                           .kv_doc_lengths = {100},
                           .query_heads = 3,
                           .kv_heads = 3,
                           .kv_channels = 8,
                           .v_channels = 16};
  EXPECT_EQ(full_verification_flop(5050, shape, PassSelection::forward), 2.0 * 5050 * 3 * (8 + 16));
  EXPECT_EQ(full_verification_flop(5050, shape, PassSelection::both), 2.0 * 5050 * 3 * (7 * 8 + 7 * 16));
}

}  // namespace
}  // namespace hcp::test
