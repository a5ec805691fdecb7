/// What each partition makes of the work: visible pairs per rank, counted token by token from the words of
/// the mask, and the rows that packed documents make rings and gathers move.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>

#include "src/exchange/balanced_pieces.hpp"
#include "tests/exchange/planned_group.hpp"

namespace hcp {
namespace {

using Lengths = std::vector<std::int64_t>;
using test::MaskKind;

/// Lengths of documents; the same on every machine, as only std::mt19937 itself is.
class RandomLengths {
 public:
  explicit RandomLengths(std::uint32_t seed) : random_{seed} {}

  std::int64_t pareto(double shape, double shortest) {
    return static_cast<std::int64_t>(shortest * std::pow(uniform(), -1.0 / shape));
  }
  std::int64_t log_normal(double mean_log, double deviation_log) {
    const double normal =
        std::sqrt(-2.0 * std::log(uniform())) * std::cos(2.0 * 3.141592653589793 * uniform());
    return 1 + static_cast<std::int64_t>(std::exp(mean_log + deviation_log * normal));
  }
  std::int64_t between(std::int64_t shortest, std::int64_t longest) {
    return shortest +
           static_cast<std::int64_t>(random_() % static_cast<std::uint32_t>(longest - shortest + 1));
  }

 private:
  double uniform() { return (static_cast<double>(random_()) + 0.5) / 4294967296.0; }  // never 0
  std::mt19937 random_;
};

/// Lengths that sum to `tokens`: a document that is longer than what is left is cut off.
template <typename Draw>
Lengths packed(std::int64_t tokens, const Draw& draw) {
  Lengths lengths;
  for (std::int64_t left = tokens; left > 0; left -= lengths.back()) {
    lengths.push_back(std::min(draw(), left));
  }
  return lengths;
}

/// Keys that each query sees, [queries]; for the kinds that this file uses, where queries are keys.
std::vector<std::int64_t> seen_keys(const test::MaskDefinition& mask) {
  std::vector<std::int64_t> seen;
  for (const std::int64_t length : mask.doc_lengths) {
    for (std::int64_t place = 0; place < length; ++place) {
      switch (mask.kind) {
        case MaskKind::causal:
          seen.push_back(std::min(place, mask.window.left < 0 ? place : mask.window.left) + 1);
          break;
        case MaskKind::block_causal:
          seen.push_back(std::min(length, (place / mask.block_size + 1) * mask.block_size));
          break;
        default:
          seen.push_back(length);
      }
    }
  }
  return seen;
}

/// Visible pairs of the busiest rank over the mean.
double imbalance(const test::MaskDefinition& mask, Partition partition, int ranks) {
  const std::vector<std::int64_t> seen = seen_keys(mask);
  std::int64_t most = 0;
  for (const PositionSet& shard : dealt({{Algorithm::p2p, ranks}}, partition, mask).queries) {
    std::int64_t area = 0;
    for (const PositionRange& range : shard) {
      area = std::accumulate(seen.begin() + range.begin, seen.begin() + range.end, area);
    }
    most = std::max(most, area);
  }
  const std::int64_t all = std::accumulate(seen.begin(), seen.end(), std::int64_t{0});
  return static_cast<double>(most) * ranks / static_cast<double>(all);
}

TEST(Imbalance, HeavyTailedCausalDocumentsOnEightRanks) {
  constexpr int draws = 20;
  constexpr std::int64_t tokens = 65'536;
  const auto draw_of = [](int distribution, RandomLengths& random) {
    switch (distribution) {
      case 0:
        return random.pareto(1.1, 64);
      case 1:
        return random.pareto(1.5, 64);
      default:
        return random.log_normal(6.0, 1.5);
    }
  };
  constexpr std::array names{"Pareto 1.1 from 64", "Pareto 1.5 from 64", "log-normal 6, 1.5"};
  for (int distribution = 0; distribution < std::ssize(names); ++distribution) {
    std::array<double, all_partitions.size()> worst{};
    std::array<double, all_partitions.size()> sum{};
    for (std::uint32_t seed = 0; seed < draws; ++seed) {
      RandomLengths random{seed};
      const test::MaskDefinition mask{.kind = MaskKind::causal, .doc_lengths = packed(tokens, [&] {
                                                                  return draw_of(distribution, random);
                                                                })};
      for (std::size_t p = 0; p < all_partitions.size(); ++p) {
        const double found = imbalance(mask, all_partitions[p], 8);
        worst[p] = std::max(worst[p], found);
        sum[p] += found;
        if (all_partitions[p] == Partition::balanced) {
          EXPECT_LE(found, 1.05) << test::text_of(mask);
        }
      }
    }
    std::printf("imbalance of %d x %lld causal tokens, %s, cp 8 (mean, worst):", draws,
                static_cast<long long>(tokens), names[static_cast<std::size_t>(distribution)]);
    for (std::size_t p = 0; p < all_partitions.size(); ++p) {
      std::printf("  %s %.3f %.3f", std::string{name_of(all_partitions[p])}.c_str(), sum[p] / draws,
                  worst[p]);
    }
    std::printf("\n");
  }
}

TEST(Imbalance, BalancedIsEvenUnderOtherMasks) {
  RandomLengths random{3};
  const Lengths documents = packed(32'768, [&] { return random.pareto(1.2, 32); });
  for (const test::MaskDefinition& mask : std::vector<test::MaskDefinition>{
           {.kind = MaskKind::no_mask, .doc_lengths = documents},
           {.kind = MaskKind::no_mask, .doc_lengths = {32'768}},
           {.kind = MaskKind::causal, .doc_lengths = {32'768}},
           {.kind = MaskKind::causal, .doc_lengths = documents, .window = {.left = 200, .right = 0}},
           {.kind = MaskKind::block_causal, .doc_lengths = documents, .block_size = 48},
           {.kind = MaskKind::block_causal, .doc_lengths = {32'767}, .block_size = 500}}) {
    for (const int ranks : {2, 3, 8, 16}) {
      EXPECT_LE(imbalance(mask, Partition::balanced, ranks), 1.05) << test::text_of(mask) << ", cp " << ranks;
    }
  }
}

TEST(BalancedPieces, WeighWhatTheirQueriesSeeAndKeepShortDocumentsWhole) {
  const int shards = 4;
  RandomLengths random{8};
  for (int round = 0; round < 20; ++round) {
    const Lengths documents = packed(4096, [&] { return random.pareto(1.0, 1) - 1; });
    for (const MaskKind kind : {MaskKind::no_mask, MaskKind::causal}) {
      const test::MaskDefinition mask{.kind = kind, .doc_lengths = documents};
      const std::vector<std::int64_t> seen = seen_keys(mask);
      const std::int64_t all = std::accumulate(seen.begin(), seen.end(), std::int64_t{0});
      const std::vector<WeightedPiece> pieces = balanced_pieces(mask.mask(), documents, shards);
      auto piece = pieces.begin();
      auto next = seen.begin();
      for (const std::int64_t length : documents) {
        const std::int64_t area = std::accumulate(next, next + length, std::int64_t{0});
        const bool whole = length <= 4096 / (8 * shards) && area <= all / (8 * shards);
        std::int64_t covered = 0;
        while (covered < length) {
          ASSERT_NE(piece, pieces.end());
          EXPECT_EQ(piece->weight, std::accumulate(next, next + piece->tokens, std::int64_t{0}));
          EXPECT_TRUE(whole ? piece->tokens == length
                            : piece->tokens == 1 || piece->weight <= all / (16 * shards));
          EXPECT_LE(piece->tokens, 4096 / (8 * shards));
          next += piece->tokens;
          covered += piece->tokens;
          ++piece;
        }
        EXPECT_EQ(covered, length);
        while (piece != pieces.end() && piece->tokens == 0) {
          ++piece;
        }
      }
      EXPECT_EQ(piece, pieces.end());
    }
  }
}

// --- Bytes of packed short documents. ---

const std::vector<std::vector<Level>> visiting_schemes{
    {{Algorithm::p2p, 8}},
    {{Algorithm::all_gather, 8}},
    {{Algorithm::p2p, 4}, {Algorithm::all_gather, 2}},
    {{Algorithm::all_gather, 2}, {Algorithm::p2p, 2}, {Algorithm::p2p, 2}}};
constexpr std::int64_t row_bytes = 2 * (16 + 16) * 2;  // two KV heads, dims 16 and 16, bf16

TEST(PackedShortDocuments, MoveNextToNothingContiguousOrBalanced) {
  constexpr std::int64_t tokens = 16'384;
  constexpr std::int64_t longest = 96;
  RandomLengths random{1};
  const Lengths documents = packed(tokens, [&] { return random.between(32, longest); });
  for (const bool causal : {false, true}) {
    for (const auto& levels : visiting_schemes) {
      const std::int64_t dense =
          PlannedGroup{levels, Lengths{tokens}, false, {4, 2}}.bytes(Pass::forward, {Payload::kv});
      ASSERT_EQ(dense, 7 * tokens * row_bytes);
      for (const Partition partition : all_partitions) {
        const PlannedGroup group{levels, documents, causal, {4, 2}, partition};
        std::printf("%s %s, %s: %.3f %% of the dense bytes\n", causal ? "causal" : "no_mask",
                    Scheme{levels}.name().c_str(), std::string{name_of(partition)}.c_str(),
                    100.0 * static_cast<double>(group.bytes(Pass::forward)) / static_cast<double>(dense));
        if (partition != Partition::contiguous && partition != Partition::balanced) {
          continue;
        }
        // Each border between two shards cuts one document at most, and of that, each part looks at the
        // other.
        const std::int64_t most = 7 * longest * row_bytes;
        for (int level = 0; level < std::ssize(levels); ++level) {
          EXPECT_LE(group.level_bytes(Pass::forward, level), most) << group.describe();
          EXPECT_LE(group.level_bytes(Pass::backward, level, {Payload::dkv}), 2 * most) << group.describe();
        }
        EXPECT_GT(group.bytes(Pass::forward), 0) << "nothing was cut, so nothing was tested";
      }
    }
  }
}

TEST(PackedShortDocuments, ThatDivideMoveNothingContiguousOrBalanced) {
  for (const auto& levels : visiting_schemes) {
    for (const Partition partition : {Partition::contiguous, Partition::balanced}) {
      const PlannedGroup group{levels, Lengths(128, 64), true, {4, 2}, partition};
      EXPECT_EQ(group.messages(Pass::forward) + group.messages(Pass::backward), 0) << group.describe();
    }
  }
}

// --- Bytes of windows. ---

TEST(WindowBytes, AWindowNoLongerThanAShardMovesOneEdgePerSide) {
  constexpr std::int64_t shard = 64;
  for (const Algorithm algorithm : {Algorithm::p2p, Algorithm::all_gather}) {
    for (const int ranks : {2, 3, 8}) {
      for (const std::int64_t size : {std::int64_t{1}, std::int64_t{20}, shard / 2, shard}) {
        const auto rows_moved = [&](MaskKind kind, Window window, Partition partition) {
          const PlannedGroup group{
              {{algorithm, ranks}},
              test::MaskDefinition{.kind = kind, .doc_lengths = {shard * ranks}, .window = window},
              {4, 2},
              partition};
          EXPECT_EQ(group.bytes(Pass::backward, {Payload::dkv}), 2 * group.bytes(Pass::forward));
          return group.bytes(Pass::forward) / row_bytes;
        };
        const std::int64_t edge = (ranks - 1) * size;
        EXPECT_EQ(rows_moved(MaskKind::causal, {size, 0}, Partition::contiguous), edge);
        EXPECT_EQ(rows_moved(MaskKind::sliding_window, {size, size}, Partition::contiguous), 2 * edge);
        if (size <= shard / 2) {  // a zigzag shard is two chunks, and the middle two belong to one shard
          EXPECT_EQ(rows_moved(MaskKind::causal, {size, 0}, Partition::zigzag), 2 * edge);
        }
      }
    }
  }
}

}  // namespace
}  // namespace hcp
