// A sample of a sequence that is longer than what ranks tell each other at once.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <thread>
#include <utility>

#include "src/job/lockstep.hpp"
#include "src/job/verification.hpp"
#include "tests/job/verified_group.hpp"

namespace hcp::test {
namespace {

/// Results of two query heads of one KV head with softmax_scale 0, where a token attends to all before it
/// alike: sums from the definition, of a sequence longer than what the ranks tell each other at once.
class LongSequence : public testing::Test {
 protected:
  static constexpr std::int64_t length = 150'000;
  static constexpr std::int64_t heads = 2;
  static constexpr std::int64_t channels = 2;
  inline static const std::vector<PositionSet> shards{
      {{0, 40'000}, {130'000, length}}, {{40'000, 130'000}}, {}};

  LongSequence() {
    Stored v{DataType::fp32, length, 1, channels};
    Stored dout{DataType::fp32, length, heads, channels};
    source_->fill(InputTensor::v, {{0, length}}, 0, 0, v.view());
    source_->fill(InputTensor::dout, {{0, length}}, 0, 0, dout.view());
    std::array<double, channels> sum{};
    for (std::int64_t row = 0; row < length; ++row) {
      for (std::int64_t i = 0; i < channels; ++i) {
        sum.at(static_cast<std::size_t>(i)) += v.get(row, 0, i);
        for (std::int64_t head = 0; head < heads; ++head) {
          out_.set(row, head, i, sum.at(static_cast<std::size_t>(i)) / static_cast<double>(row + 1));
        }
      }
      for (auto& lse : lse_) {
        lse.push_back(static_cast<float>(std::log(static_cast<double>(row + 1))));
      }
    }
    sum = {};
    for (std::int64_t row = length - 1; row >= 0; --row) {
      for (std::int64_t i = 0; i < channels; ++i) {
        sum.at(static_cast<std::size_t>(i)) +=
            (dout.get(row, 0, i) + dout.get(row, 1, i)) / static_cast<double>(row + 1);
        dv_.set(row, 0, i, sum.at(static_cast<std::size_t>(i)));
      }
    }
  }

  /// Rank 0 holds lse of head 0, rank 1 that of head 1.
  LayerResults results(std::size_t rank, Stored& out, Stored& zeros, Stored& dv) {
    const auto first_head = static_cast<std::int64_t>(rank);
    return {.mask = &mask_,
            .softmax_scale = 0.0F,
            .tokens = length,
            .layer = 0,
            .pass = PassSelection::both,
            .dtype = DataType::fp32,
            .queries_per_kv = heads,
            .query_heads = {0, heads},
            .kv_heads = {0, 1},
            .dim_qk = 1,
            .dim_v = channels,
            .rows = shards[rank],
            .kv_rows = shards[rank],
            .out = out.view(),
            .dq = zeros.view(),
            .dk = {zeros.view().data, DataType::fp32, zeros.rows, 1, 1},
            .dv = dv.view(),
            .lse_rows = {{0, length}},
            .lse_heads = {first_head, rank < 2 ? 1 : 0},
            .lse = rank < 2 ? lse_.at(rank).data() : nullptr};
  }

  std::vector<VerificationResult> verify_sample() {
    ThreadGather gather{shards.size()};
    std::vector<VerificationResult> verdicts(shards.size());
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < shards.size(); ++rank) {
      threads.emplace_back([&, rank] {
        Stored out = out_.rows_at(shards[rank], DataType::fp32);
        Stored dv = dv_.rows_at(shards[rank], DataType::fp32);
        Stored zeros{DataType::fp32, count_of(shards[rank]), heads, 1};
        std::int64_t filled_before = 0;
        bool announced = false;
        const CountingSource counting{*source_};
        verdicts[rank] = verify_layer(
            results(rank, out, zeros, dv), counting, Coverage::sample,
            [&](std::span<const double> mine) {
              EXPECT_TRUE(announced) << "no progress before a gather";
              announced = false;
              largest_message_ = std::max<std::int64_t>(largest_message_, std::ssize(mine));
              most_between_gathers_ =
                  std::max<std::int64_t>(most_between_gathers_, counting.rows - filled_before);
              filled_before = counting.rows;
              return gather.gather(rank, mine);
            },
            [&] { announced = true; });
      });
    }
    threads.clear();
    return verdicts;
  }

  /// Counts the rows of inputs that are computed.
  struct CountingSource final : InputSource {
    const InputSource& source;
    mutable std::int64_t rows = 0;

    explicit CountingSource(const InputSource& counted) : source{counted} {}
    void fill(InputTensor tensor, const PositionSet& positions, std::int64_t first_head, int layer,
              TensorView target) const override {
      rows += target.rows;
      source.fill(tensor, positions, first_head, layer, target);
    }
    [[nodiscard]] bool has_out() const override { return false; }
  };

  AttentionMask mask_ = AttentionMask::causal(std::vector<std::int64_t>{0, length});
  std::unique_ptr<InputSource> source_ = make_synthetic_input(3);
  Stored out_{DataType::fp32, length, heads, channels};
  Stored dv_{DataType::fp32, length, 1, channels};
  std::array<std::vector<float>, heads> lse_;
  std::atomic<std::int64_t> largest_message_ = 0;
  std::atomic<std::int64_t> most_between_gathers_ = 0;
};

TEST_F(LongSequence, RightResultsPass) {
  const auto verdicts = verify_sample();
  for (const std::size_t rank : {0U, 1U}) {
    for (const VerifiedTensor tensor : {VerifiedTensor::out, VerifiedTensor::lse, VerifiedTensor::dq,
                                        VerifiedTensor::dk, VerifiedTensor::dv}) {
      EXPECT_LT(error_of(verdicts[rank], tensor), 2e-7) << name_of(tensor) << " rank " << rank;
    }
  }
}

TEST_F(LongSequence, LseOfEveryTokenIsUsedAtItsPlace) {
  for (const std::int64_t token :
       {std::int64_t{65'536}, length - 2}) {  // not sampled, not in the first gather
    auto& lse = lse_[1][static_cast<std::size_t>(token)];
    const float right = std::exchange(lse, infinity);  // its query then contributes nothing to dv
    const auto verdicts = verify_sample();
    EXPECT_LT(error_of(verdicts[0], VerifiedTensor::lse), 2e-7);
    EXPECT_GT(error_of(verdicts[0], VerifiedTensor::dv), 1e-7) << token;
    lse = right;
  }
}

TEST_F(LongSequence, RanksMeetAfterEachBlockAndSayLittle) {
  static_cast<void>(verify_sample());
  EXPECT_LT(largest_message_, length / 2);
  EXPECT_LE(most_between_gathers_, 2 * 1024 + 64);
}

/// Ranks meet as often for a shard of single rows as for one range of as many.
TEST(Lockstep, BlocksAreOfRowsWhateverTheirRanges) {
  PositionSet stripes;
  for (std::int64_t row = 0; row < 3000; ++row) {
    stripes.push_back({4 * row, 4 * row + 1});
  }
  const std::vector<PositionSet> blocks = Lockstep::blocks_of(stripes);
  ASSERT_EQ(blocks.size(), 3);
  PositionSet together;
  for (const PositionSet& block : blocks) {
    EXPECT_LE(count_of(block), 1024);
    together.insert(together.end(), block.begin(), block.end());
  }
  EXPECT_EQ(together, stripes);
  EXPECT_TRUE(Lockstep::blocks_of({}).empty());
}

}  // namespace
}  // namespace hcp::test
