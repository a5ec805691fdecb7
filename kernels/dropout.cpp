#include "kernels/dropout.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

namespace hcp {
namespace {

constexpr double numbers_below = 65536.0;
constexpr std::int32_t largest_threshold = 65535;

std::uint32_t low_word(std::uint64_t value) {
  return static_cast<std::uint32_t>(value);
}
std::uint32_t high_word(std::uint64_t value) {
  return static_cast<std::uint32_t>(value >> 32);
}

std::uint64_t wide_product(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint64_t>(a) * b;
}

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < philox_rounds; ++round) {
    const std::uint64_t first = wide_product(philox_multipliers[0], counter[0]);
    const std::uint64_t second = wide_product(philox_multipliers[1], counter[2]);
    counter = {high_word(second) ^ counter[1] ^ key[0], low_word(second),
               high_word(first) ^ counter[3] ^ key[1], low_word(first)};
    key[0] += philox_key_steps[0];
    key[1] += philox_key_steps[1];
  }
  return counter;
}

std::int32_t Dropout::threshold() const {
  return static_cast<std::int32_t>(std::lround(probability * numbers_below));
}

double Dropout::scale() const {
  return numbers_below / (numbers_below - threshold());
}

std::size_t Dropout::document_of(std::int64_t query_position) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(query_offsets, query_position) -
                                  query_offsets.begin()) -
         1;
}

void check_dropout(const Dropout& dropout, std::int64_t first_query, std::int64_t last_query) {
  if (!(dropout.probability >= 0.0 && dropout.probability <= largest_threshold / numbers_below)) {
    throw std::invalid_argument{"the dropout probability is " + std::to_string(dropout.probability) +
                                "; it must be at least 0 and at most 1 - 2^-16"};
  }
  if (!dropout.drops()) {
    return;
  }
  if (dropout.query_offsets.size() != dropout.key_offsets.size() || dropout.documents_per_row < 1) {
    throw std::invalid_argument{"dropout knows " + std::to_string(dropout.query_offsets.size()) +
                                " offsets of queries, " + std::to_string(dropout.key_offsets.size()) +
                                " of keys and " + std::to_string(dropout.documents_per_row) +
                                " documents per row; queries and keys have the same documents"};
  }
  if (dropout.query_offsets.empty() || first_query < dropout.query_offsets.front() ||
      last_query >= dropout.query_offsets.back()) {
    throw std::invalid_argument{"queries " + std::to_string(first_query) + " to " +
                                std::to_string(last_query) + " are not all in a document that dropout knows"};
  }
}

DropoutStream dropout_stream(const Dropout& dropout, std::size_t document, std::int64_t head) {
  const auto per_row = static_cast<std::size_t>(dropout.documents_per_row);
  const auto words =
      philox({low_word(static_cast<std::uint64_t>(dropout.layer)), low_word(document / per_row),
              low_word(document % per_row), low_word(static_cast<std::uint64_t>(dropout.first_head + head))},
             {low_word(dropout.seed), high_word(dropout.seed)});
  return {{words[0], words[1], words[2], words[3]}};
}

std::array<std::uint16_t, dropout_block_keys> dropout_numbers(const DropoutStream& stream,
                                                              std::uint32_t query, std::uint32_t block) {
  constexpr std::uint32_t calls = dropout_block_calls;
  std::array<std::uint16_t, dropout_block_keys> numbers{};
  for (std::uint32_t call = 0; call < calls; ++call) {
    const auto words = philox({calls * block + call, query, stream.words[2], stream.words[3]},
                              {stream.words[0], stream.words[1]});
    for (std::size_t key = 0; key < 4; ++key) {
      for (std::size_t half_block = 0; half_block < 2; ++half_block) {
        numbers.at(32 * half_block + 4 * call + key) =
            static_cast<std::uint16_t>(words.at(2 * half_block + key / 2) >> (16 * (key % 2)));
      }
    }
  }
  return numbers;
}

}  // namespace hcp
