/// Dropout of attention probabilities, decided by a counter-based generator.
///
/// Whether the pair of a query and a key is dropped depends on what the two are, not on when, where or in
/// which block they meet: so the same elements drop whatever the number of ranks, the partition and the
/// instruction set. Here is the definition; kernels with vectors of their own give the same bits.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace hcp {

/// Constants of Philox 4x32-10.
/// @source Salmon et al. 2011, doi:10.1145/2063384.2063405, section 3.3 and table 2
inline constexpr int philox_rounds = 10;
inline constexpr std::uint32_t philox_multipliers[2]{0xD2511F53, 0xCD9E8D57};
inline constexpr std::uint32_t philox_key_steps[2]{0x9E3779B9, 0xBB67AE85};

/// Four random words, a function of counter and key alone.
[[nodiscard]] std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                                  std::array<std::uint32_t, 2> key);

/// What is dropped in one layer.
struct Dropout {
  double probability = 0.0;  ///< of an element, 0 .. 1 - 2^-16; rounded to a multiple of 2^-16
  std::uint64_t seed = 0;
  std::int64_t layer = 0;
  std::int64_t first_head = 0;  ///< over all tensor-parallel ranks, of the query head that HeadMap calls 0
  /// Where the documents of all rows of the micro-batch begin among the queries and among the keys, and the
  /// end; global positions, [micro-batch rows * documents_per_row + 1] each.
  std::span<const std::int64_t> query_offsets;
  std::span<const std::int64_t> key_offsets;
  std::int64_t documents_per_row = 1;

  /// An element whose number (dropout_numbers) is below is dropped.
  [[nodiscard]] std::int32_t threshold() const;
  [[nodiscard]] bool drops() const { return threshold() > 0; }
  /// What is kept is multiplied by this: 1 / (1 - probability).
  [[nodiscard]] double scale() const;

  /// Index into the offsets of the document that holds the query at a global position; a document has at
  /// least one query then.
  [[nodiscard]] std::size_t document_of(std::int64_t query_position) const;
};

/// @throws std::invalid_argument unless the probability is in its range, and every position of a query
/// belongs to a document
void check_dropout(const Dropout& dropout, std::int64_t first_query, std::int64_t last_query);

/// The numbers of one document and one query head are those of this stream.
struct DropoutStream {
  std::uint32_t words[4];
};

/// philox of the counter (layer, micro-batch row, document in the row, first_head + head) with the seed as
/// key.
/// @param document  index into the offsets
/// @param head      as HeadMap counts query heads
[[nodiscard]] DropoutStream dropout_stream(const Dropout& dropout, std::size_t document, std::int64_t head);

/// Numbers of neighbouring keys that are drawn together, in so many calls of the generator.
inline constexpr int dropout_block_keys = 64;
inline constexpr int dropout_block_calls = 8;

/// The numbers, uniform in 0 .. 2^16 - 1, of keys 64 block .. 64 block + 63 of a document; query and keys are
/// counted from the first ones of the document. Call c has the counter (8 block + c, query, stream word 2,
/// stream word 3) and the key (stream word 0, stream word 1). Of its four words the first two, low half
/// first, are the numbers of keys 4 c .. 4 c + 3 of the block, the others those of keys 32 + 4 c .. 32 + 4 c
/// + 3: so words of several calls, side by side in a vector register, are numbers in the order of the keys.
[[nodiscard]] std::array<std::uint16_t, dropout_block_keys> dropout_numbers(const DropoutStream& stream,
                                                                            std::uint32_t query,
                                                                            std::uint32_t block);

}  // namespace hcp
