#include "topology/sequence_partition.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>

namespace hcp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Lengths = std::vector<std::int64_t>;
using Ranges = std::vector<TokenRange>;

std::vector<std::int64_t> tokens_in(const SequencePartition& partition, int shard) {
  std::vector<std::int64_t> tokens;
  for (const TokenRange& range : partition.ranges_of(shard)) {
    for (std::int64_t token = range.begin; token < range.end; ++token) {
      tokens.push_back(token);
    }
  }
  return tokens;
}

std::vector<std::int64_t> shard_sizes(const SequencePartition& partition) {
  std::vector<std::int64_t> sizes;
  for (int shard = 0; shard < partition.shards(); ++shard) {
    sizes.push_back(partition.tokens_of(shard));
  }
  return sizes;
}

TEST(Zigzag, GoldenPackedDocuments) {
  const SequencePartition partition{Partition::zigzag, Lengths{8, 8}, 2};
  EXPECT_THAT(tokens_in(partition, 0), ElementsAre(0, 1, 6, 7, 8, 9, 14, 15));
  EXPECT_THAT(tokens_in(partition, 1), ElementsAre(2, 3, 4, 5, 10, 11, 12, 13));
  EXPECT_EQ(partition.ranges_of(0), (Ranges{{0, 2}, {6, 10}, {14, 16}}));
  EXPECT_EQ(partition.ranges_of(1), (Ranges{{2, 6}, {10, 14}}));
}

TEST(Zigzag, GoldenIndexFormulaWhereItDivides) {
  // Reference formula: with L = length / shards, token i of a document in a shard is
  // start + i + L/2 · (i < L/2 ? r : 2·(shards−1) − r).
  for (const int shards : {1, 2, 3, 4, 8}) {
    const Lengths lengths{2 * shards, 8 * shards, 6 * shards};
    const SequencePartition partition{Partition::zigzag, lengths, shards};
    for (int r = 0; r < shards; ++r) {
      std::vector<std::int64_t> expected;
      std::int64_t start = 0;
      for (const std::int64_t length : lengths) {
        const std::int64_t local = length / shards;
        for (std::int64_t i = 0; i < local; ++i) {
          expected.push_back(start + i + local / 2 * (i < local / 2 ? r : 2 * (shards - 1) - r));
        }
        start += length;
      }
      EXPECT_EQ(tokens_in(partition, r), expected) << "shard " << r << " of " << shards;
    }
  }
}

TEST(Zigzag, GoldenValidTokensOfPaddedDocuments) {
  // Padding stands at the end of a document, so it falls into the second chunks of the low shards.
  const auto valid = [](std::int64_t length, std::int64_t padded, int shards) {
    const SequencePartition partition{Partition::zigzag, Lengths{padded}, shards};
    std::vector<std::int64_t> counts;
    for (int shard = 0; shard < shards; ++shard) {
      const std::vector<std::int64_t> tokens = tokens_in(partition, shard);
      counts.push_back(
          std::count_if(tokens.begin(), tokens.end(), [&](std::int64_t t) { return t < length; }));
    }
    return counts;
  };
  EXPECT_THAT(valid(5, 8, 2), ElementsAre(2, 3));
  EXPECT_THAT(valid(11, 16, 4), ElementsAre(2, 2, 3, 4));
}

TEST(Zigzag, OddDocumentsKeepEveryToken) {
  const SequencePartition partition{Partition::zigzag, Lengths{4, 3}, 2};
  EXPECT_EQ(partition.ranges_of(0), (Ranges{{0, 1}, {3, 5}, {6, 7}}));
  EXPECT_EQ(partition.ranges_of(1), (Ranges{{1, 3}, {5, 6}}));
}

TEST(Zigzag, FewerTokensThanShards) {
  const SequencePartition partition{Partition::zigzag, Lengths{2, 1}, 4};
  EXPECT_EQ(partition.ranges_of(0), (Ranges{{0, 1}}));
  EXPECT_EQ(partition.ranges_of(1), (Ranges{{1, 2}}));
  EXPECT_EQ(partition.ranges_of(2), (Ranges{{2, 3}}));
  EXPECT_THAT(partition.ranges_of(3), IsEmpty());
  EXPECT_EQ(partition.tokens_of(3), 0);
}

TEST(Zigzag, EmptyDocumentsChangeNothing) {
  const SequencePartition partition{Partition::zigzag, Lengths{16, 24, 0, 0}, 2};  // offsets 0,16,40,40,40
  EXPECT_EQ(partition.ranges_of(0), (Ranges{{0, 4}, {12, 22}, {34, 40}}));
  EXPECT_EQ(partition.ranges_of(1), (Ranges{{4, 12}, {22, 34}}));
  const SequencePartition between{Partition::zigzag, Lengths{0, 16, 0, 24}, 2};
  EXPECT_EQ(between.ranges_of(0), partition.ranges_of(0));
}

TEST(Zigzag, LengthsThatDoNotDivide) {
  const SequencePartition eleven{Partition::zigzag, Lengths{11}, 4};
  EXPECT_EQ(eleven.ranges_of(0), (Ranges{{0, 2}, {10, 11}}));
  EXPECT_EQ(eleven.ranges_of(1), (Ranges{{2, 4}, {9, 10}}));
  EXPECT_EQ(eleven.ranges_of(2), (Ranges{{4, 6}, {8, 9}}));
  EXPECT_EQ(eleven.ranges_of(3), (Ranges{{6, 8}}));
  const SequencePartition thirteen{Partition::zigzag, Lengths{13}, 4};
  EXPECT_EQ(thirteen.ranges_of(0), (Ranges{{0, 2}, {11, 13}}));
  EXPECT_EQ(thirteen.ranges_of(1), (Ranges{{2, 4}, {10, 11}}));
  EXPECT_EQ(thirteen.ranges_of(2), (Ranges{{4, 6}, {9, 10}}));
  EXPECT_EQ(thirteen.ranges_of(3), (Ranges{{6, 9}}));
  const SequencePartition thirty_three{Partition::zigzag, Lengths{33}, 2};
  EXPECT_EQ(thirty_three.ranges_of(0), (Ranges{{0, 9}, {25, 33}}));
  EXPECT_EQ(thirty_three.ranges_of(1), (Ranges{{9, 25}}));
}

TEST(Zigzag, RealDocumentLengths) {
  const SequencePartition partition{Partition::zigzag, Lengths{137, 2041, 89}, 8};
  EXPECT_EQ(partition.tokens(), 2267);
  EXPECT_THAT(shard_sizes(partition), ElementsAre(284, 284, 284, 283, 283, 283, 283, 283));
}

TEST(Contiguous, FirstPartsAreOneLonger) {
  const SequencePartition partition{Partition::contiguous, Lengths{2999}, 4};
  EXPECT_THAT(shard_sizes(partition), ElementsAre(750, 750, 750, 749));
  EXPECT_EQ(partition.ranges_of(3), (Ranges{{2250, 2999}}));
  const SequencePartition packed{Partition::contiguous, Lengths{137, 2041, 89}, 8};
  EXPECT_EQ(packed.ranges_of(2), (Ranges{{568, 852}}));
  EXPECT_EQ(packed.ranges_of(3), (Ranges{{852, 1135}}));
}

TEST(Contiguous, FewerTokensThanShards) {
  const SequencePartition partition{Partition::contiguous, Lengths{2, 1}, 4};
  EXPECT_EQ(partition.ranges_of(2), (Ranges{{2, 3}}));
  EXPECT_THAT(partition.ranges_of(3), IsEmpty());
}

/// The rule of Partition::zigzag word by word, on lists of tokens.
std::vector<std::vector<std::int64_t>> zigzag_word_by_word(const Lengths& lengths, int shards) {
  const auto shard_count = static_cast<std::size_t>(shards);
  std::vector<std::vector<std::int64_t>> held(shard_count);
  std::int64_t token = 0;
  for (const std::int64_t length : lengths) {
    std::vector<std::int64_t> chunk_sizes(2 * shard_count, length / (2 * shards));
    std::vector<bool> lengthened(2 * shard_count, false);
    for (std::int64_t spare = length % (2 * shards); spare > 0; --spare) {
      std::size_t neediest = shard_count;
      std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
      for (std::size_t shard = 0; shard < shard_count; ++shard) {
        const std::size_t second = 2 * shard_count - 1 - shard;
        const std::int64_t holds = std::ssize(held[shard]) + chunk_sizes[shard] + chunk_sizes[second];
        if ((!lengthened[shard] || !lengthened[second]) && holds < fewest) {
          fewest = holds;
          neediest = shard;
        }
      }
      const std::size_t chunk = lengthened[neediest] ? 2 * shard_count - 1 - neediest : neediest;
      lengthened[chunk] = true;
      ++chunk_sizes[chunk];
    }
    for (std::size_t chunk = 0; chunk < chunk_sizes.size(); ++chunk) {
      for (std::int64_t i = 0; i < chunk_sizes[chunk]; ++i) {
        held[std::min(chunk, 2 * shard_count - 1 - chunk)].push_back(token++);
      }
    }
  }
  return held;
}

Lengths random_lengths(std::mt19937& random) {
  Lengths lengths(std::uniform_int_distribution<std::size_t>{0, 8}(random));
  for (std::int64_t& length : lengths) {
    length = std::uniform_int_distribution<std::int64_t>{0, 60}(random);
  }
  return lengths;
}

TEST(Zigzag, RandomShapesFollowTheRuleWordByWord) {
  std::mt19937 random{7};
  for (int shape = 0; shape < 400; ++shape) {
    const int shards = std::uniform_int_distribution<int>{1, 9}(random);
    const Lengths lengths = random_lengths(random);
    const SequencePartition partition{Partition::zigzag, lengths, shards};
    const std::vector<std::vector<std::int64_t>> expected = zigzag_word_by_word(lengths, shards);
    for (int shard = 0; shard < shards; ++shard) {
      ASSERT_EQ(tokens_in(partition, shard), expected[static_cast<std::size_t>(shard)])
          << ::testing::PrintToString(lengths) << " over " << shards;
    }
  }
}

/// Every document in one piece or two, of any weight.
std::vector<WeightedPiece> random_pieces(std::mt19937& random, const Lengths& lengths) {
  std::vector<WeightedPiece> pieces;
  for (const std::int64_t length : lengths) {
    const std::int64_t first = std::uniform_int_distribution<std::int64_t>{0, length}(random);
    for (const std::int64_t tokens : {first, length - first}) {
      pieces.push_back({tokens, std::uniform_int_distribution<std::int64_t>{0, 2000}(random)});
    }
  }
  return pieces;
}

TEST(SequencePartition, RandomShapesCoverEveryTokenOnceInBalancedNormalisedShards) {
  std::mt19937 random{11};
  for (int shape = 0; shape < 400; ++shape) {
    const int shards = std::uniform_int_distribution<int>{1, 9}(random);
    const Lengths lengths = random_lengths(random);
    const PartitionOptions options{.stripe_size = 1, .pieces = random_pieces(random, lengths)};
    for (const Partition kind : all_partitions) {
      const SequencePartition partition{kind, lengths, shards, options};
      const std::int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
      ASSERT_EQ(partition.tokens(), tokens);
      std::vector<int> holders(static_cast<std::size_t>(tokens), 0);
      for (int shard = 0; shard < shards; ++shard) {
        std::int64_t row = 0;
        std::int64_t previous_end = -1;
        for (const TokenRange& range : partition.ranges_of(shard)) {
          EXPECT_GT(range.begin, previous_end);  // ascending, and merged where adjacent
          EXPECT_GT(range.end, range.begin);
          previous_end = range.end;
        }
        for (const std::int64_t token : tokens_in(partition, shard)) {
          ++holders.at(static_cast<std::size_t>(token));
          EXPECT_EQ(partition.place_of(token), (TokenPlace{shard, row}));
          ++row;
        }
        EXPECT_EQ(row, partition.tokens_of(shard));
      }
      EXPECT_THAT(holders, ::testing::Each(1));
      const std::vector<std::int64_t> sizes = shard_sizes(partition);
      const auto [smallest, largest] = std::minmax_element(sizes.begin(), sizes.end());
      EXPECT_LE(*largest - *smallest, 1);
    }
  }
}

TEST(SequencePartition, TenMillionTokensInShortDocuments) {
  const Lengths lengths(2'000'000, 5);
  const SequencePartition partition{Partition::zigzag, lengths, 8};
  EXPECT_EQ(partition.tokens(), 10'000'000);
  EXPECT_THAT(shard_sizes(partition), ::testing::Each(1'250'000));
  const TokenPlace last = partition.place_of(9'999'999);
  EXPECT_EQ(partition.ranges_of(last.shard).back().end, 10'000'000);
  EXPECT_EQ(last.row, 1'249'999);
}

TEST(SequencePartition, LargestLengthsDoNotOverflow) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (const Partition kind : {Partition::zigzag, Partition::contiguous}) {
    const SequencePartition partition{kind, Lengths{most}, 3};
    EXPECT_EQ(partition.ranges_of(0).front().begin, 0);
    EXPECT_EQ(partition.tokens_of(0) + partition.tokens_of(1) + partition.tokens_of(2), most);
    EXPECT_EQ(partition.place_of(most - 1).shard, kind == Partition::zigzag ? 0 : 2);
  }
}

TEST(SequencePartition, NoTokensAtAll) {
  for (const Lengths& lengths : {Lengths{}, Lengths{0, 0}}) {
    const SequencePartition partition{Partition::zigzag, lengths, 3};
    EXPECT_EQ(partition.tokens(), 0);
    EXPECT_THAT(partition.ranges_of(2), IsEmpty());
    EXPECT_THROW(static_cast<void>(partition.place_of(0)), std::out_of_range);
  }
}

std::string refusal(const Lengths& lengths, int shards) {
  try {
    const SequencePartition partition{Partition::zigzag, lengths, shards};
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(SequencePartition, RefusesWrongInput) {
  EXPECT_THAT(refusal({3, -1}, 2), HasSubstr("document length -1; it must be at least 0"));
  EXPECT_THAT(refusal({std::numeric_limits<std::int64_t>::max(), 1}, 2), HasSubstr("more than 2^63"));
  EXPECT_THAT(refusal({3}, 0), HasSubstr("number of shards = 0; it must be at least 1"));
}

}  // namespace
}  // namespace hcp
