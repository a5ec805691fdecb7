/// Which tokens a shard of the sequence holds. Pure arithmetic; which rank has which shard: level_digits.hpp.
///
///   zigzag, 2 shards, documents of 8 and 8 tokens (4 chunks each; shard r gets chunks r and 3−r):
///     token   0 1 2 3 4 5 6 7 | 8 9 10 11 12 13 14 15
///     shard   0 0 1 1 1 1 0 0 | 0 0  1  1  1  1  0  0
///   contiguous:
///     shard   0 0 0 0 0 0 0 0 | 1 1  1  1  1  1  1  1
///   striped, stripes of 3 tokens:
///     shard   0 0 0 1 1 1 0 0 | 0 1  1  1  0  0  0  1
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "topology/balanced_deal.hpp"

namespace hcp {

enum class Partition {
  /// Each document is cut into 2·shards chunks, and shard r gets chunks r and 2·shards−1−r, which balances
  /// causal masks. Chunk sizes differ by at most one; spare tokens go one by one to the shard that holds
  /// fewest tokens so far and still has an unlengthened chunk in this document, ties to the lowest, its first
  /// chunk first. Shard sizes then differ by at most one, too.
  zigzag,
  /// The whole stream of tokens in equal parts, the first ones one token longer: short documents mostly stay
  /// whole.
  contiguous,
  /// Stripes of the whole stream go to the shards in turn: token t to shard (t / stripe size) mod shards.
  striped,
  /// Weighted pieces of the stream, dealt so that both the weights and the tokens of the shards are even:
  /// deal_balanced (balanced_deal.hpp).
  balanced,
};

inline constexpr std::array all_partitions{Partition::zigzag, Partition::contiguous, Partition::striped,
                                           Partition::balanced};

/// What some partitions need besides the lengths.
struct PartitionOptions {
  std::int64_t stripe_size = 1;         ///< striped: tokens
  std::vector<WeightedPiece> pieces{};  ///< balanced: they cover the stream in order
};

/// "zigzag", "contiguous", "striped", "balanced".
[[nodiscard]] std::string_view name_of(Partition partition);

/// Global tokens [begin, end), counted over all documents.
struct TokenRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] constexpr std::int64_t size() const { return end - begin; }
  friend bool operator==(const TokenRange&, const TokenRange&) = default;
};

/// Where a token is stored.
struct TokenPlace {
  int shard = 0;
  std::int64_t row = 0;  ///< in the shard, whose rows are in ascending token order
  friend bool operator==(const TokenPlace&, const TokenPlace&) = default;
};

class SequencePartition {
 public:
  /// Any lengths: shards may be uneven or empty, documents may be empty. Takes O(documents·shards) time;
  /// striped O(stripes), balanced as deal_balanced.
  /// @param document_lengths tokens of each document, in order
  /// @throws std::invalid_argument if a length or piece is negative, the sum of lengths overflows, shards or
  /// the stripe size is below 1, or the pieces of a balanced partition do not cover the documents
  SequencePartition(Partition partition, std::span<const std::int64_t> document_lengths, int shards,
                    const PartitionOptions& options = {});

  [[nodiscard]] int shards() const { return static_cast<int>(ranges_.size()); }
  /// All shards together.
  [[nodiscard]] std::int64_t tokens() const noexcept { return tokens_; }
  [[nodiscard]] std::int64_t tokens_of(int shard) const;
  /// Ascending, none empty, merged where adjacent. Empty if the shard holds nothing.
  [[nodiscard]] const std::vector<TokenRange>& ranges_of(int shard) const;
  /// The inverse map, O(log ranges).
  /// @throws std::out_of_range if there is no such token
  [[nodiscard]] TokenPlace place_of(std::int64_t token) const;

 private:
  /// A range and where its first token is stored.
  struct PlacedRange {
    std::int64_t begin;
    TokenPlace first;
  };

  void deal_zigzag(std::span<const std::int64_t> document_lengths);
  void deal_contiguous(std::int64_t tokens);
  void deal_striped(std::int64_t tokens, std::int64_t stripe_size);
  void deal_pieces(std::int64_t tokens, std::span<const WeightedPiece> pieces);
  /// Gives the next `size` tokens of the stream to `shard`.
  void append(std::size_t shard, std::int64_t size);

  std::int64_t tokens_ = 0;
  std::vector<std::vector<TokenRange>> ranges_;  // [shard]
  std::vector<std::int64_t> tokens_of_;          // [shard]
  std::vector<PlacedRange> places_;              // ascending, covering every token once
};

}  // namespace hcp
