// Verification of results that a dense attention in double made and that the test then spoils. The ranks of a
// context-parallel group are threads, with shards as zigzag deals them and lse as a head swap leaves it.

#include "src/job/verification.hpp"

#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <barrier>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

#include "src/job/error_norms.hpp"

namespace hcp {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// The second of two tensor-parallel ranks of a model with 8 query heads and 4 KV heads.
constexpr HeadSpan query_heads{4, 4};
constexpr HeadSpan kv_heads{2, 2};
constexpr std::int64_t queries_per_kv = 2;
constexpr std::int64_t dim_qk = 8;
constexpr std::int64_t dim_v = 16;
constexpr std::int64_t tokens = 300;
constexpr float scale = 0.35F;
const std::vector<std::int64_t> offsets{0, 120, 120, 300};
const std::vector<PositionSet> shards{{{0, 75}, {250, 300}}, {{75, 250}}, {}};
const std::vector<HeadSpan> lse_heads{{4, 1}, {5, 2}, {7, 1}};

/// A tensor of a storage type that is read and written as numbers.
struct Stored {
  DataType type;
  std::int64_t rows, heads, dim;
  std::vector<std::byte> bytes;

  Stored(DataType storage, std::int64_t r, std::int64_t h, std::int64_t d)
      : type{storage},
        rows{r},
        heads{h},
        dim{d},
        bytes(static_cast<std::size_t>(r * h * d) * size_of(storage)) {}
  [[nodiscard]] std::byte* place(std::int64_t row, std::int64_t head, std::int64_t i) {
    return bytes.data() + static_cast<std::size_t>((row * heads + head) * dim + i) * size_of(type);
  }
  [[nodiscard]] double get(std::int64_t row, std::int64_t head, std::int64_t i) {
    float value = 0;
    widen(type, place(row, head, i), &value, 1);
    return value;
  }
  void set(std::int64_t row, std::int64_t head, std::int64_t i, double value) {
    const auto narrow = static_cast<float>(value);
    round_to(type, &narrow, place(row, head, i), 1);
  }
  void add(std::int64_t row, std::int64_t head, std::int64_t i, double value) {
    set(row, head, i, get(row, head, i) + value);
  }
  [[nodiscard]] TensorView view() { return {bytes.data(), type, rows, heads, dim}; }
  [[nodiscard]] Stored rows_at(const PositionSet& positions, DataType to) {
    Stored part{to, count_of(positions), heads, dim};
    std::int64_t row = 0;
    for (const PositionRange range : positions) {
      for (std::int64_t token = range.begin; token < range.end; ++token, ++row) {
        for (std::int64_t i = 0; i < heads * dim; ++i) {
          part.set(row, i / dim, i % dim, get(token, i / dim, i % dim));
        }
      }
    }
    return part;
  }
};

struct Whole {
  Stored out{DataType::fp32, tokens, query_heads.count, dim_v};
  Stored lse{DataType::fp32, tokens, query_heads.count, 1};
  Stored dq{DataType::fp32, tokens, query_heads.count, dim_qk};
  Stored dk{DataType::fp32, tokens, kv_heads.count, dim_qk};
  Stored dv{DataType::fp32, tokens, kv_heads.count, dim_v};
};

Stored input(const InputSource& source, InputTensor tensor, HeadSpan heads, std::int64_t dim, DataType type) {
  Stored values{type, tokens, heads.count, dim};
  source.fill(tensor, {{0, tokens}}, heads.first, 0, values.view());
  return values;
}

double dot(Stored& a, std::int64_t row_a, std::int64_t head_a, Stored& b, std::int64_t row_b,
           std::int64_t head_b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.dim; ++i) {
    sum += a.get(row_a, head_a, i) * b.get(row_b, head_b, i);
  }
  return sum;
}

/// Causal attention of every head and its gradient, dense, from the definition.
Whole dense_attention(const InputSource& source, DataType type) {
  Stored q = input(source, InputTensor::q, query_heads, dim_qk, type);
  Stored k = input(source, InputTensor::k, kv_heads, dim_qk, type);
  Stored v = input(source, InputTensor::v, kv_heads, dim_v, type);
  Stored dout = input(source, InputTensor::dout, query_heads, dim_v, type);
  Whole whole;
  std::vector<double> dk(static_cast<std::size_t>(tokens * kv_heads.count * dim_qk));
  std::vector<double> dv(static_cast<std::size_t>(tokens * kv_heads.count * dim_v));
  for (std::int64_t head = 0; head < query_heads.count; ++head) {
    const std::int64_t kv = head / queries_per_kv;
    for (std::int64_t row = 0; row < tokens; ++row) {
      const std::int64_t first = row < 120 ? 0 : 120;
      std::vector<double> p;
      double sum = 0;
      for (std::int64_t key = first; key <= row; ++key) {
        p.push_back(std::exp(scale * dot(q, row, head, k, key, kv)));
        sum += p.back();
      }
      whole.lse.set(row, head, 0, std::log(sum));
      std::vector<double> out(dim_v);
      for (std::int64_t key = first; key <= row; ++key) {
        p[static_cast<std::size_t>(key - first)] /= sum;
        for (std::int64_t i = 0; i < dim_v; ++i) {
          out[static_cast<std::size_t>(i)] += p[static_cast<std::size_t>(key - first)] * v.get(key, kv, i);
        }
      }
      double delta = 0;
      for (std::int64_t i = 0; i < dim_v; ++i) {
        whole.out.set(row, head, i, out[static_cast<std::size_t>(i)]);
        delta += out[static_cast<std::size_t>(i)] * dout.get(row, head, i);
      }
      std::vector<double> dq(dim_qk);
      for (std::int64_t key = first; key <= row; ++key) {
        const double weight = p[static_cast<std::size_t>(key - first)];
        const double ds = scale * weight * (dot(dout, row, head, v, key, kv) - delta);
        for (std::int64_t i = 0; i < dim_qk; ++i) {
          dq[static_cast<std::size_t>(i)] += ds * k.get(key, kv, i);
          dk[static_cast<std::size_t>((key * kv_heads.count + kv) * dim_qk + i)] += ds * q.get(row, head, i);
        }
        for (std::int64_t i = 0; i < dim_v; ++i) {
          dv[static_cast<std::size_t>((key * kv_heads.count + kv) * dim_v + i)] +=
              weight * dout.get(row, head, i);
        }
      }
      for (std::int64_t i = 0; i < dim_qk; ++i) {
        whole.dq.set(row, head, i, dq[static_cast<std::size_t>(i)]);
      }
    }
  }
  for (std::int64_t i = 0; i < tokens * kv_heads.count * dim_qk; ++i) {
    whole.dk.set(0, 0, i, dk[static_cast<std::size_t>(i)]);
  }
  for (std::int64_t i = 0; i < tokens * kv_heads.count * dim_v; ++i) {
    whole.dv.set(0, 0, i, dv[static_cast<std::size_t>(i)]);
  }
  return whole;
}

struct Rank {
  Stored out, dq, dk, dv;
  std::vector<float> lse;
  LayerResults results;

  Rank(std::size_t rank, Whole& whole, const AttentionMask& mask, DataType type)
      : out{whole.out.rows_at(shards[rank], type)},
        dq{whole.dq.rows_at(shards[rank], type)},
        dk{whole.dk.rows_at(shards[rank], type)},
        dv{whole.dv.rows_at(shards[rank], type)} {
    for (std::int64_t row = 0; row < tokens; ++row) {
      for (std::int64_t head = 0; head < lse_heads[rank].count; ++head) {
        lse.push_back(
            static_cast<float>(whole.lse.get(row, lse_heads[rank].first + head - query_heads.first, 0)));
      }
    }
    results = {.mask = &mask,
               .softmax_scale = scale,
               .tokens = tokens,
               .layer = 0,
               .pass = PassSelection::both,
               .dtype = type,
               .queries_per_kv = queries_per_kv,
               .query_heads = query_heads,
               .kv_heads = kv_heads,
               .dim_qk = dim_qk,
               .dim_v = dim_v,
               .rows = shards[rank],
               .kv_rows = shards[rank],
               .out = out.view(),
               .dq = dq.view(),
               .dk = dk.view(),
               .dv = dv.view(),
               .lse_rows = {{0, tokens}},
               .lse_heads = lse_heads[rank],
               .lse = lse.data()};
  }
};

/// Collects what the threads give, in the order of their ranks.
class ThreadGather {
 public:
  std::vector<double> gather(std::size_t rank, std::span<const double> mine) {
    parts_[rank].assign(mine.begin(), mine.end());
    barrier_.arrive_and_wait();
    std::vector<double> all;
    for (const auto& part : parts_) {
      all.insert(all.end(), part.begin(), part.end());
    }
    barrier_.arrive_and_wait();
    return all;
  }

 private:
  std::vector<std::vector<double>> parts_ = std::vector<std::vector<double>>(shards.size());
  std::barrier<> barrier_{static_cast<std::ptrdiff_t>(shards.size())};
};

/// Verifies the dense results after `spoil` has changed those of the ranks; one result per rank.
std::vector<VerificationResult> verify(
    Coverage coverage, DataType type = DataType::fp32,
    const std::function<void(std::vector<Rank>&)>& spoil = [](std::vector<Rank>&) {}) {
  const auto source = make_synthetic_input(21);
  const AttentionMask mask = AttentionMask::causal(offsets);
  Whole whole = dense_attention(*source, type);
  std::vector<Rank> ranks;
  ranks.reserve(shards.size());
  for (std::size_t rank = 0; rank < shards.size(); ++rank) {
    ranks.emplace_back(rank, whole, mask, type);
  }
  spoil(ranks);
  ThreadGather gather;
  std::vector<VerificationResult> verdicts(shards.size());
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < shards.size(); ++rank) {
    threads.emplace_back([&, rank] {
      verdicts[rank] = verify_layer(
          ranks[rank].results, *source, coverage,
          [&](std::span<const double> mine) { return gather.gather(rank, mine); }, [] {});
    });
  }
  threads.clear();
  return verdicts;
}

/// The gather of a rank that is the whole group.
std::vector<double> alone(std::span<const double> mine) {
  return {mine.begin(), mine.end()};
}

double error_of(const VerificationResult& result, VerifiedTensor tensor) {
  return result.of(tensor).value().error;
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
    ThreadGather gather;
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

TEST(ErrorNorms, MagnitudesStandInForAReferenceThatVanishes) {
  ErrorNorms norms{3};
  norms.add(0, 3e-6, 0.0, 0.0);
  EXPECT_EQ(norms.largest({{0, 1}, {5, 6}, {9, 10}})->error, infinity) << "nothing to compare with";
  ErrorNorms with_magnitude{3};
  with_magnitude.add(1, 3.0, 0.0, 30.0);
  with_magnitude.add(1, 4.0, 0.0, 40.0);
  with_magnitude.add(2, 0.0, 0.0, 0.0);
  const auto largest = with_magnitude.largest({{0, 1}, {5, 6}, {9, 10}});
  EXPECT_NEAR(largest->error, 0.1, 1e-15);
  EXPECT_EQ(largest->chunk, (PositionRange{5, 6}));
}

TEST(ErrorNorms, EqualInfinitiesAreNoError) {
  ErrorNorms norms{1};
  norms.add(0, -infinity, -infinity, 0.0);
  norms.add(0, 2.0, 2.0, 0.0);
  EXPECT_EQ(norms.largest({{0, 2}})->error, 0.0);
  norms.add(0, 1.0, -infinity, 0.0);
  EXPECT_EQ(norms.largest({{0, 2}})->error, infinity);
}

}  // namespace
}  // namespace hcp
