// What drops: the generator's published answers, the numbers of a block, their statistics, refusals.

#include "kernels/dropout.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>
#include <stdexcept>
#include <vector>

namespace hcp {
namespace {

using Counter = std::array<std::uint32_t, 4>;
using Key = std::array<std::uint32_t, 2>;

// Known answers of philox4x32 with 10 rounds, from the file kat_vectors of the authors' library Random123.
TEST(Philox, PublishedAnswers) {
  constexpr std::uint32_t ones = 0xFFFFFFFF;
  EXPECT_EQ(philox(Counter{}, Key{}), (Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}),
            (Counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  // Digits of pi.
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

/// Two rows of the micro-batch with three documents each, one of them empty.
const std::vector<std::int64_t> query_offsets{0, 100, 100, 130, 230, 230, 260};
const std::vector<std::int64_t> key_offsets{0, 50, 57, 90, 140, 147, 180};

Dropout dropout_with(double probability) {
  return {.probability = probability,
          .seed = 0x0123'4567'89ab'cdef,
          .layer = 5,
          .first_head = 16,
          .query_offsets = query_offsets,
          .key_offsets = key_offsets,
          .documents_per_row = 3};
}

TEST(DropoutNumbers, StreamsBelongToSeedLayerRowDocumentAndHead) {
  const Dropout dropout = dropout_with(0.5);
  const Counter expected = philox({5, 1, 2, 16 + 3}, {0x89ab'cdef, 0x0123'4567});
  const DropoutStream stream = dropout_stream(dropout, 5, 3);
  EXPECT_EQ((Counter{stream.words[0], stream.words[1], stream.words[2], stream.words[3]}), expected);
}

TEST(DropoutNumbers, AreTheHalvesOfTheGeneratorsWords) {
  const DropoutStream stream{{11, 12, 13, 14}};
  const auto numbers = dropout_numbers(stream, 1000, 7);
  for (std::size_t key = 0; key < 64; ++key) {
    const std::uint32_t call = static_cast<std::uint32_t>(key % 32 / 4);
    const Counter words = philox({8 * 7 + call, 1000, 13, 14}, {11, 12});
    const std::uint32_t word = words.at(2 * (key / 32) + key % 4 / 2);
    EXPECT_EQ(numbers.at(key), key % 2 == 0 ? word & 0xFFFFU : word >> 16) << key;
  }
}

TEST(DropoutNumbers, DocumentsOfQueries) {
  const Dropout dropout = dropout_with(0.5);
  EXPECT_EQ(dropout.document_of(0), 0U);
  EXPECT_EQ(dropout.document_of(99), 0U);
  EXPECT_EQ(dropout.document_of(100), 2U);  // the empty one has no queries
  EXPECT_EQ(dropout.document_of(130), 3U);
  EXPECT_EQ(dropout.document_of(259), 5U);
}

/// Blocks of 64 numbers of 512 queries of one stream.
std::vector<std::uint16_t> many_numbers(const DropoutStream& stream) {
  std::vector<std::uint16_t> all;
  for (std::uint32_t query = 0; query < 512; ++query) {
    for (std::uint32_t block = 0; block < 32; ++block) {
      const auto numbers = dropout_numbers(stream, query, block);
      all.insert(all.end(), numbers.begin(), numbers.end());
    }
  }
  return all;
}

TEST(DropoutNumbers, DropAsOftenAsAsked) {
  const std::vector<std::uint16_t> numbers = many_numbers(dropout_stream(dropout_with(0.5), 0, 0));
  const auto count = static_cast<double>(numbers.size());
  for (const double probability : {0.01, 0.1, 0.25, 0.5, 0.9}) {
    const std::int32_t threshold = dropout_with(probability).threshold();
    EXPECT_NEAR(threshold / 65536.0, probability, 0.5 / 65536.0);
    const double p = threshold / 65536.0;
    const auto dropped = std::ranges::count_if(numbers, [&](std::uint16_t n) { return n < threshold; });
    EXPECT_NEAR(static_cast<double>(dropped), p * count, 4.0 * std::sqrt(p * (1.0 - p) * count)) << p;
  }
}

TEST(DropoutNumbers, NeighboursAndStreamsDropIndependently) {
  const std::vector<std::uint16_t> numbers = many_numbers(dropout_stream(dropout_with(0.5), 0, 0));
  const std::vector<std::uint16_t> others = many_numbers(dropout_stream(dropout_with(0.5), 0, 1));
  const auto both_in = [&](const std::vector<std::uint16_t>& second, std::size_t distance) {
    double both = 0.0;
    for (std::size_t i = 0; i + distance < numbers.size(); ++i) {
      both += numbers[i] < 0x8000 && second[i + distance] < 0x8000 ? 1.0 : 0.0;
    }
    return both;
  };
  const auto count = static_cast<double>(numbers.size());
  const double allowed = 4.0 * std::sqrt(0.25 * 0.75 * count);
  for (const std::size_t distance : {1, 2, 3, 4, 32, 64, 2048}) {
    EXPECT_NEAR(both_in(numbers, distance), 0.25 * (count - static_cast<double>(distance)), allowed)
        << distance;
  }
  EXPECT_NEAR(both_in(others, 0), 0.25 * count, allowed);
}

TEST(DropoutNumbers, EveryPartOfTheKeyCounts) {
  std::set<std::uint32_t> first_words;
  const auto add = [&](const Dropout& dropout, std::size_t document, std::int64_t head) {
    first_words.insert(dropout_stream(dropout, document, head).words[0]);
  };
  const Dropout dropout = dropout_with(0.5);
  for (std::size_t document = 0; document < 6; ++document) {
    add(dropout, document, 0);
  }
  add(dropout, 0, 1);
  Dropout other = dropout;
  other.layer = 6;
  add(other, 0, 0);
  other = dropout;
  other.seed += 1;
  add(other, 0, 0);
  other.seed = dropout.seed + (std::uint64_t{1} << 32);
  add(other, 0, 0);
  EXPECT_EQ(first_words.size(), 10U);
  other = dropout;
  other.first_head = 17;
  EXPECT_EQ(dropout_stream(other, 0, 0).words[0], dropout_stream(dropout, 0, 1).words[0]);
}

TEST(Dropout, ScaleMakesUpForWhatDrops) {
  const Dropout dropout = dropout_with(0.3);
  EXPECT_DOUBLE_EQ(dropout.scale() * (1.0 - dropout.threshold() / 65536.0), 1.0);
  EXPECT_EQ(dropout_with(0.0).scale(), 1.0);
  EXPECT_FALSE(dropout_with(0.0).drops());
}

TEST(Dropout, WrongValuesAreRefused) {
  for (const double probability : {-0.1, 1.0, 0.99999, std::nan("")}) {
    EXPECT_THROW(check_dropout(dropout_with(probability), 0, 259), std::invalid_argument) << probability;
  }
  EXPECT_NO_THROW(check_dropout(dropout_with(65535.0 / 65536.0), 0, 259));
  EXPECT_THROW(check_dropout(dropout_with(0.1), 0, 260), std::invalid_argument);
  EXPECT_THROW(check_dropout(dropout_with(0.1), -1, 3), std::invalid_argument);
  EXPECT_NO_THROW(check_dropout({}, 0, 1000000));
}

}  // namespace
}  // namespace hcp
