// The masks with a name, document by document.

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <utility>

#include "kernels/attention_mask.hpp"

namespace hcp {
namespace {

struct Document {
  PositionRange queries;
  PositionRange keys;
};

void check_offsets(std::span<const std::int64_t> offsets, const std::string& whose) {
  if (offsets.empty() || offsets.front() != 0) {
    throw std::invalid_argument{"document offsets of the " + whose + " begin with " +
                                (offsets.empty() ? std::string{"nothing"} : std::to_string(offsets.front())) +
                                "; the first document begins at 0"};
  }
  const auto descent = std::ranges::adjacent_find(offsets, std::ranges::greater{});
  if (descent != offsets.end()) {
    throw std::invalid_argument{"document offsets of the " + whose +
                                " must ascend: " + std::to_string(*descent) + " stands before " +
                                std::to_string(*std::next(descent))};
  }
}

std::vector<Document> documents_of(const DocumentBounds& bounds) {
  check_offsets(bounds.queries, "queries");
  check_offsets(bounds.keys, "keys");
  if (bounds.queries.size() != bounds.keys.size()) {
    throw std::invalid_argument{"queries of " + std::to_string(bounds.queries.size() - 1) +
                                " documents, keys of " + std::to_string(bounds.keys.size() - 1) +
                                "; every document needs both, of length 0 where it has none"};
  }
  std::vector<Document> documents;
  for (std::size_t i = 0; i + 1 < bounds.queries.size(); ++i) {
    documents.push_back({{bounds.queries[i], bounds.queries[i + 1]}, {bounds.keys[i], bounds.keys[i + 1]}});
  }
  return documents;
}

void check_window(const Window& window) {
  if (window.left < -1 || window.right < -1) {
    throw std::invalid_argument{"window " + std::to_string(window.left) + "," + std::to_string(window.right) +
                                ": each bound must be a number of keys, 0 or more, or -1 for all"};
  }
}

void check_causal_window(const Window& window) {
  check_window(window);
  if (window.right > 0) {
    throw std::invalid_argument{"window " + std::to_string(window.left) + "," + std::to_string(window.right) +
                                ": a causal query sees nothing after its own place, so the right bound must "
                                "be 0 or -1"};
  }
}

/// One length in each document, between 0 and the document's.
void check_lengths(std::span<const std::int64_t> lengths, std::span<const Document> documents,
                   const std::string& what) {
  if (lengths.size() != documents.size()) {
    throw std::invalid_argument{std::to_string(lengths.size()) + " " + what + " lengths for " +
                                std::to_string(documents.size()) + " documents; one per document is needed"};
  }
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 0 || lengths[i] > documents[i].queries.size()) {
      throw std::invalid_argument{what + " length " + std::to_string(lengths[i]) + " of document " +
                                  std::to_string(i) + " must lie in 0 .. " +
                                  std::to_string(documents[i].queries.size()) + ", the document's length"};
    }
  }
}

/// The tokens of each document that are not padding.
std::vector<PositionRange> valid_tokens(std::span<const std::int64_t> offsets,
                                        std::span<const std::int64_t> valid_lengths) {
  const std::vector<Document> documents = documents_of(offsets);
  check_lengths(valid_lengths, documents, "valid");
  std::vector<PositionRange> valid;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const std::int64_t begin = documents[i].queries.begin;
    valid.push_back({begin, begin + valid_lengths[i]});
  }
  return valid;
}

void check_block_size(std::int64_t block_size) {
  if (block_size < 1) {
    throw std::invalid_argument{"mask block size " + std::to_string(block_size) + " must be 1 or more"};
  }
}

void append(std::vector<MaskPiece>& pieces, PositionRange queries, const MovingInterval& keys) {
  if (!queries.empty()) {
    pieces.push_back({queries, {keys}});
  }
}

/// bound + slope * query kept within `limits`, for queries on which it does not pass from one side of a limit
/// to the other.
std::pair<std::int64_t, std::int64_t> kept_within(PositionRange limits, std::int64_t bound,
                                                  std::int64_t slope, PositionRange queries) {
  if (bound + slope * (queries.end - 1) <= limits.begin) {
    return {limits.begin, 0};
  }
  if (bound + slope * queries.begin >= limits.end) {
    return {limits.end, 0};
  }
  return {bound, slope};
}

/// The queries that see some of `keys`, in pieces cut where a moving bound enters or leaves the document.
void append_clipped(std::vector<MaskPiece>& pieces, const Document& document, const MovingInterval& keys) {
  const PositionRange& queries = document.queries;
  const PositionRange& limits = document.keys;
  std::vector<std::int64_t> cuts{queries.begin, queries.end};
  const auto cut_before = [&](std::int64_t query) {
    cuts.push_back(std::clamp(query, queries.begin, queries.end));
  };
  for (const std::int64_t limit : {limits.begin, limits.end}) {
    if (keys.slope_begin != 0) {
      cut_before(limit - keys.begin);  // the query at which it reaches the limit begins a piece
    }
    if (keys.slope_end != 0) {
      cut_before(limit - keys.end + 1);  // that query ends a piece
    }
  }
  std::ranges::sort(cuts);
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    const PositionRange part{cuts[i], cuts[i + 1]};
    if (part.empty()) {
      continue;
    }
    const auto [begin, slope_begin] = kept_within(limits, keys.begin, keys.slope_begin, part);
    const auto [end, slope_end] = kept_within(limits, keys.end, keys.slope_end, part);
    const MovingInterval clipped{
        .begin = begin, .end = end, .slope_begin = slope_begin, .slope_end = slope_end};
    if (!clipped.at(part.begin).empty()) {
      append(pieces, part, clipped);
    }
  }
}

/// Keys from `window.left` before the query's own place to `window.right` behind it.
/// @param own_place the key position of that place is the query's plus this
void append_window(std::vector<MaskPiece>& pieces, const Document& document, const Window& window,
                   std::int64_t own_place) {
  // A window that is wider than both the document's queries and keys has no bound: and sums stay far from
  // overflow.
  const std::int64_t widest = document.queries.size() + document.keys.size();
  MovingInterval keys{.begin = document.keys.begin, .end = document.keys.end};
  if (window.left >= 0 && window.left < widest) {
    keys.begin = own_place - window.left;
    keys.slope_begin = 1;
  }
  if (window.right >= 0 && window.right < widest) {
    keys.end = own_place + window.right + 1;
    keys.slope_end = 1;
  }
  append_clipped(pieces, document, keys);
}

/// Where blocks of block_size tokens begin and end in `tokens`, the last perhaps shorter.
std::vector<PositionRange> blocks_of(PositionRange tokens, std::int64_t block_size) {
  std::vector<PositionRange> blocks;
  while (!tokens.empty()) {
    const std::int64_t end = tokens.begin + std::min(block_size, tokens.size());
    blocks.push_back({tokens.begin, end});
    tokens.begin = end;
  }
  return blocks;
}

void append_block_causal(std::vector<MaskPiece>& pieces, PositionRange tokens, std::int64_t block_size) {
  for (const PositionRange block : blocks_of(tokens, block_size)) {
    append(pieces, block, {.begin = tokens.begin, .end = block.end});
  }
}

}  // namespace

AttentionMask AttentionMask::no_mask(const DocumentBounds& documents) {
  return sliding_window(documents, {});
}

AttentionMask AttentionMask::causal(const DocumentBounds& documents, const Window& window) {
  check_causal_window(window);
  return sliding_window(documents, {.left = window.left, .right = 0});
}

AttentionMask AttentionMask::causal_bottom_right(const DocumentBounds& documents, const Window& window) {
  check_causal_window(window);
  std::vector<MaskPiece> pieces;
  for (const Document& document : documents_of(documents)) {
    append_window(pieces, document, {.left = window.left, .right = 0},
                  document.keys.end - document.queries.end);
  }
  return AttentionMask{std::move(pieces)};
}

AttentionMask AttentionMask::sliding_window(const DocumentBounds& documents, const Window& window) {
  check_window(window);
  std::vector<MaskPiece> pieces;
  for (const Document& document : documents_of(documents)) {
    append_window(pieces, document, window, document.keys.begin - document.queries.begin);
  }
  return AttentionMask{std::move(pieces)};
}

AttentionMask AttentionMask::padding(std::span<const std::int64_t> offsets,
                                     std::span<const std::int64_t> valid_lengths) {
  std::vector<MaskPiece> pieces;
  for (const PositionRange valid : valid_tokens(offsets, valid_lengths)) {
    append(pieces, valid, {.begin = valid.begin, .end = valid.end});
  }
  return AttentionMask{std::move(pieces)};
}

AttentionMask AttentionMask::padding_causal(std::span<const std::int64_t> offsets,
                                            std::span<const std::int64_t> valid_lengths) {
  std::vector<MaskPiece> pieces;
  for (const PositionRange valid : valid_tokens(offsets, valid_lengths)) {
    append(pieces, valid, {.begin = valid.begin, .end = 1, .slope_end = 1});
  }
  return AttentionMask{std::move(pieces)};
}

AttentionMask AttentionMask::prefix_lm(std::span<const std::int64_t> offsets,
                                       std::span<const std::int64_t> prefix_lengths) {
  const std::vector<Document> documents = documents_of(offsets);
  check_lengths(prefix_lengths, documents, "prefix");
  std::vector<MaskPiece> pieces;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const PositionRange tokens = documents[i].queries;
    const std::int64_t prefix_end = tokens.begin + prefix_lengths[i];
    append(pieces, {tokens.begin, prefix_end}, {.begin = tokens.begin, .end = prefix_end});
    append(pieces, {prefix_end, tokens.end}, {.begin = tokens.begin, .end = 1, .slope_end = 1});
  }
  return AttentionMask{std::move(pieces)};
}

AttentionMask AttentionMask::block_causal(std::span<const std::int64_t> offsets, std::int64_t block_size) {
  check_block_size(block_size);
  std::vector<MaskPiece> pieces;
  for (const Document& document : documents_of(offsets)) {
    append_block_causal(pieces, document.queries, block_size);
  }
  return AttentionMask{std::move(pieces)};
}

AttentionMask AttentionMask::block_diffusion(std::span<const std::int64_t> offsets, std::int64_t block_size) {
  check_block_size(block_size);
  std::vector<MaskPiece> pieces;
  for (const Document& document : documents_of(offsets)) {
    const PositionRange rows = document.queries;
    if (rows.size() % 2 != 0) {
      throw std::invalid_argument{"a block-diffusion document at row " + std::to_string(rows.begin) +
                                  " has " + std::to_string(rows.size()) +
                                  " rows; it must be even: all tokens noised, then all of them clean"};
    }
    const PositionRange noised{rows.begin, rows.begin + rows.size() / 2};
    const PositionRange clean{noised.end, rows.end};
    for (const PositionRange block : blocks_of(noised, block_size)) {
      const std::int64_t clean_before = clean.begin + block.begin - noised.begin;
      pieces.push_back(
          {block, {{{.begin = block.begin, .end = block.end}, {.begin = clean.begin, .end = clean_before}}}});
    }
    append_block_causal(pieces, clean, block_size);
  }
  return AttentionMask{std::move(pieces)};
}

}  // namespace hcp
