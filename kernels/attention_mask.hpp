/// Which keys a query sees, as intervals of global positions.
///
/// Every mask is a list of pieces: a run of queries whose visible keys are at most two intervals with bounds
/// that are either constant or move along with the query. So areas and looked-at keys of whole ranges are
/// closed forms, and nothing of size S x S, nor even of size S, is needed to plan an exchange.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kernels/position_ranges.hpp"

namespace hcp {

/// Keys [begin + query * slope_begin, end + query * slope_end), slopes 0 or 1.
struct MovingInterval {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t slope_begin = 0;
  std::int64_t slope_end = 0;

  [[nodiscard]] constexpr PositionRange at(std::int64_t query) const {
    return {begin + slope_begin * query, end + slope_end * query};
  }
};

/// Queries that share one rule. An interval is empty for none of them or for all; then it is [x, x). The two
/// never overlap, though they may touch, and if both have keys `keys[0]` lies before `keys[1]`.
struct MaskPiece {
  PositionRange queries;
  std::array<MovingInterval, 2> keys;
};

/// Where the documents lie among the queries and among the keys: document i has queries [queries[i],
/// queries[i + 1]) and keys [keys[i], keys[i + 1]). Both [documents + 1], ascending from 0; equal neighbours
/// are documents of length zero.
struct DocumentBounds {
  std::span<const std::int64_t> queries;
  std::span<const std::int64_t> keys;

  /// Queries and keys are the same tokens.
  template <std::convertible_to<std::span<const std::int64_t>> Offsets>
  DocumentBounds(const Offsets& offsets) : queries{offsets}, keys{offsets} {}  // NOLINT: one list is both
  DocumentBounds(std::span<const std::int64_t> query_offsets, std::span<const std::int64_t> key_offsets)
      : queries{query_offsets}, keys{key_offsets} {}
};

/// How many keys before and after its own place a query sees; -1: all.
struct Window {
  std::int64_t left = -1;
  std::int64_t right = -1;
};

/// Each factory throws std::invalid_argument that names the value and what would be right. "Place" is the
/// index of a token in its document.
class AttentionMask {
 public:
  /// Nobody sees anything.
  AttentionMask() = default;

  /// Every query of a document sees every key of it.
  [[nodiscard]] static AttentionMask no_mask(const DocumentBounds& documents);
  /// Query i of a document sees keys 0 .. i of it; with a window, of those i - left .. i + min(right, 0) (a
  /// right bound above 0 is refused, -1 counts as 0).
  [[nodiscard]] static AttentionMask causal(const DocumentBounds& documents, const Window& window = {});
  /// The same with the last query on the last key: query i sees keys 0 .. i + keys - queries.
  [[nodiscard]] static AttentionMask causal_bottom_right(const DocumentBounds& documents,
                                                         const Window& window = {});
  /// Query i sees keys i - left .. i + right.
  [[nodiscard]] static AttentionMask sliding_window(const DocumentBounds& documents, const Window& window);
  /// The first valid_lengths[document] tokens see each other (causally); the rest, padding, sees and is seen
  /// by nobody. Queries and keys are the same tokens.
  [[nodiscard]] static AttentionMask padding(std::span<const std::int64_t> offsets,
                                             std::span<const std::int64_t> valid_lengths);
  [[nodiscard]] static AttentionMask padding_causal(std::span<const std::int64_t> offsets,
                                                    std::span<const std::int64_t> valid_lengths);
  /// Query i sees the first prefix_lengths[document] keys, and keys 0 .. i.
  [[nodiscard]] static AttentionMask prefix_lm(std::span<const std::int64_t> offsets,
                                               std::span<const std::int64_t> prefix_lengths);
  /// Tokens in blocks of block_size, the last perhaps shorter: a query sees its block and those before.
  [[nodiscard]] static AttentionMask block_causal(std::span<const std::int64_t> offsets,
                                                  std::int64_t block_size);
  /// A document is L noised rows, then L clean ones of the same tokens. A noised block sees itself and the
  /// clean blocks before it, a clean block the clean blocks up to itself.
  [[nodiscard]] static AttentionMask block_diffusion(std::span<const std::int64_t> offsets,
                                                     std::int64_t block_size);
  /// Two half-open key ranges per query row: [queries, 4] as begin, end, begin, end; each within [0, keys],
  /// not overlapping, in any order; begin = end is empty.
  [[nodiscard]] static AttentionMask intervals(std::span<const std::int64_t> bounds, std::int64_t keys);

  /// Ascending by query, covering every query that sees a key.
  [[nodiscard]] std::span<const MaskPiece> pieces() const { return pieces_; }

  /// The two key intervals of one query; both empty when it sees nothing. O(log pieces).
  [[nodiscard]] std::array<PositionRange, 2> visible(std::int64_t query) const;

  /// The pieces that meet `queries`, cut to them.
  [[nodiscard]] std::vector<MaskPiece> pieces_within(PositionRange queries) const;

  /// Keys that at least one query of `queries` sees.
  [[nodiscard]] PositionSet looked_at(const PositionSet& queries) const;

  /// Number of visible (query, key) pairs with the query in `queries`.
  [[nodiscard]] std::int64_t area(const PositionSet& queries) const;

  /// Number of visible (query, key) pairs with the query in `queries` and the key in `keys`.
  [[nodiscard]] std::int64_t area(const PositionSet& queries, const PositionSet& keys) const;

  /// The least number of leading queries of `queries` that see half of area(queries, keys).
  [[nodiscard]] std::int64_t half_of_area(const PositionSet& queries, const PositionSet& keys) const;

 private:
  explicit AttentionMask(std::vector<MaskPiece> pieces) : pieces_{std::move(pieces)} {}

  std::vector<MaskPiece> pieces_;
};

}  // namespace hcp
