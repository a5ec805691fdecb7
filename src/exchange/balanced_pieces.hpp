/// The pieces that a balanced partition deals, weighed by what an attention mask shows them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/attention_mask.hpp"
#include "topology/sequence_partition.hpp"

namespace hcp {

/// Whole short documents and pieces of the others, with the visible (query, key) pairs of their queries.
///
/// Of S tokens and A visible pairs over cp shards, a document stays whole up to S/8cp tokens and A/8cp pairs;
/// a longer one is cut evenly into pieces of at most S/8cp tokens, and these are halved until none sees more
/// than A/16cp pairs. So even the heaviest piece is a small part of a shard's share, however few documents
/// hold most of the work.
/// @param document_lengths queries of each document, in order
[[nodiscard]] std::vector<WeightedPiece> balanced_pieces(const AttentionMask& mask,
                                                         std::span<const std::int64_t> document_lengths,
                                                         int shards);

}  // namespace hcp
