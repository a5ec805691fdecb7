/// Deals weighted pieces of the token stream to shards, so that weights and token counts are even at once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hcp {

/// The next `tokens` tokens of the stream, which are dealt together.
struct WeightedPiece {
  std::int64_t tokens = 0;
  std::int64_t weight = 0;  ///< the work that they make, in any unit
};

/// The next `tokens` tokens of the stream, and who gets them.
struct DealtPart {
  int shard = 0;
  std::int64_t tokens = 0;
};

/// Every shard gets total / shards tokens, the first ones one more, so memory stays even. As tokens are given
/// out evenly, what makes a shard heavy is weight per token: the densest piece goes first, onto the lightest
/// shard that has room for all of it, ties to the earlier piece and the lower shard. A piece that fits
/// nowhere whole is cut where it fills the roomiest shard; each cut fills a shard, so there are fewer cuts
/// than shards.
///
/// Deterministic: the same parts on every rank. Takes O(pieces·(log pieces + shards)) time.
/// @param pieces in stream order, none negative
/// @param shards at least 1
/// @return in stream order, none empty
/// @source Graham 1969, Bounds on Multiprocessing Timing Anomalies (longest first onto the least loaded)
[[nodiscard]] std::vector<DealtPart> deal_balanced(std::span<const WeightedPiece> pieces, int shards);

}  // namespace hcp
