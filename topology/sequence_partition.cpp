#include "topology/sequence_partition.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>

namespace hcp {

namespace {

/// Sum of the lengths, after they were found to be usable.
std::int64_t checked_token_count(std::span<const std::int64_t> document_lengths) {
  std::int64_t tokens = 0;
  for (const std::int64_t length : document_lengths) {
    if (length < 0) {
      throw std::invalid_argument{"document length " + std::to_string(length) + "; it must be at least 0"};
    }
    if (length > std::numeric_limits<std::int64_t>::max() - tokens) {
      throw std::invalid_argument{"the document lengths add up to more than 2^63 − 1 tokens"};
    }
    tokens += length;
  }
  return tokens;
}

/// Deals the spare tokens of document after document, remembering who has received fewest.
class SpareTokens {
 public:
  explicit SpareTokens(std::size_t shards) : received_(shards, 0), lengthened_(shards, 0) {}

  /// For the next document: how many chunks of each shard get one more token, [shard] with 0, 1 or 2.
  /// @param spare below 2·shards
  const std::vector<int>& deal(std::int64_t spare) {
    std::fill(lengthened_.begin(), lengthened_.end(), 0);
    if (spare == 0) {
      return lengthened_;
    }
    // Level by level from the fewest, lowest shard first. Shards never differ by more than one, so a document
    // takes at most three levels.
    for (std::int64_t level = *std::min_element(received_.begin(), received_.end()); spare > 0; ++level) {
      for (std::size_t shard = 0; shard < received_.size() && spare > 0; ++shard) {
        if (received_[shard] == level && lengthened_[shard] < 2) {
          ++received_[shard];
          ++lengthened_[shard];
          --spare;
        }
      }
    }
    return lengthened_;
  }

 private:
  std::vector<std::int64_t> received_;  // all documents; the rest of a document is equal for all shards
  std::vector<int> lengthened_;
};

}  // namespace

std::string_view name_of(Partition partition) {
  switch (partition) {
    case Partition::zigzag:
      return "zigzag";
    case Partition::contiguous:
      return "contiguous";
    case Partition::striped:
      return "striped";
    case Partition::balanced:
      return "balanced";
  }
  return "?";
}

SequencePartition::SequencePartition(Partition partition, std::span<const std::int64_t> document_lengths,
                                     int shards, const PartitionOptions& options) {
  const std::int64_t tokens = checked_token_count(document_lengths);
  if (shards < 1) {
    throw std::invalid_argument{"number of shards = " + std::to_string(shards) + "; it must be at least 1"};
  }
  ranges_.resize(static_cast<std::size_t>(shards));
  tokens_of_.resize(static_cast<std::size_t>(shards), 0);
  switch (partition) {
    case Partition::zigzag:
      deal_zigzag(document_lengths);
      break;
    case Partition::contiguous:
      deal_contiguous(tokens);
      break;
    case Partition::striped:
      deal_striped(tokens, options.stripe_size);
      break;
    case Partition::balanced:
      deal_pieces(tokens, options.pieces);
      break;
  }
}

void SequencePartition::deal_zigzag(std::span<const std::int64_t> document_lengths) {
  const std::size_t shards = ranges_.size();
  const auto chunks = static_cast<std::int64_t>(2 * shards);
  SpareTokens spare_tokens{shards};
  for (const std::int64_t length : document_lengths) {
    const std::int64_t chunk_size = length / chunks;
    const std::vector<int>& lengthened = spare_tokens.deal(length % chunks);
    for (std::size_t shard = 0; shard < shards; ++shard) {
      append(shard, chunk_size + (lengthened[shard] > 0 ? 1 : 0));
    }
    for (std::size_t shard = shards; shard-- > 0;) {
      append(shard, chunk_size + (lengthened[shard] > 1 ? 1 : 0));
    }
  }
}

void SequencePartition::deal_contiguous(std::int64_t tokens) {
  const auto shards = static_cast<std::int64_t>(ranges_.size());
  for (std::int64_t shard = 0; shard < shards; ++shard) {
    append(static_cast<std::size_t>(shard), tokens / shards + (shard < tokens % shards ? 1 : 0));
  }
}

void SequencePartition::deal_striped(std::int64_t tokens, std::int64_t stripe_size) {
  if (stripe_size < 1) {
    throw std::invalid_argument{"stripe size = " + std::to_string(stripe_size) + "; it must be at least 1"};
  }
  for (std::size_t shard = 0; tokens_ < tokens; shard = (shard + 1) % ranges_.size()) {
    append(shard, std::min(stripe_size, tokens - tokens_));
  }
}

void SequencePartition::deal_pieces(std::int64_t tokens, std::span<const WeightedPiece> pieces) {
  std::int64_t uncovered = tokens;
  bool covered = true;
  for (const WeightedPiece& piece : pieces) {
    if (piece.tokens < 0 || piece.weight < 0) {
      throw std::invalid_argument{"a piece of " + std::to_string(piece.tokens) + " tokens that weighs " +
                                  std::to_string(piece.weight) + "; neither may be negative"};
    }
    covered = covered && piece.tokens <= uncovered;
    uncovered -= covered ? piece.tokens : 0;
  }
  if (!covered || uncovered != 0) {
    throw std::invalid_argument{"the pieces of a balanced partition do not cover the " +
                                std::to_string(tokens) + " tokens of the documents exactly"};
  }
  for (const DealtPart& part : deal_balanced(pieces, shards())) {
    append(static_cast<std::size_t>(part.shard), part.tokens);
  }
}

void SequencePartition::append(std::size_t shard, std::int64_t size) {
  if (size == 0) {
    return;
  }
  const std::int64_t begin = tokens_;
  tokens_ += size;
  std::vector<TokenRange>& held = ranges_[shard];
  if (!held.empty() && held.back().end == begin) {
    held.back().end = tokens_;
  } else {
    held.push_back({begin, tokens_});
    places_.push_back({begin, {static_cast<int>(shard), tokens_of_[shard]}});
  }
  tokens_of_[shard] += size;
}

std::int64_t SequencePartition::tokens_of(int shard) const {
  return tokens_of_.at(static_cast<std::size_t>(shard));
}

const std::vector<TokenRange>& SequencePartition::ranges_of(int shard) const {
  return ranges_.at(static_cast<std::size_t>(shard));
}

TokenPlace SequencePartition::place_of(std::int64_t token) const {
  if (token < 0 || token >= tokens_) {
    throw std::out_of_range{"token " + std::to_string(token) + " of " + std::to_string(tokens_)};
  }
  const auto after =
      std::upper_bound(places_.begin(), places_.end(), token,
                       [](std::int64_t t, const PlacedRange& range) { return t < range.begin; });
  const PlacedRange& range = *std::prev(after);
  return {range.first.shard, range.first.row + (token - range.begin)};
}

}  // namespace hcp
