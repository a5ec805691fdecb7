/// Which keys a query sees, as intervals of global positions.
///
/// Every mask is a list of pieces: a run of queries whose visible keys are at most two intervals with bounds
/// that are either constant or move along with the query. So areas and looked-at keys of whole ranges are
/// closed forms, and nothing of size S x S, nor even of size S, is needed to plan an exchange.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/position_ranges.hpp"

namespace hcp {

/// Keys [begin + query * slope_begin, end + query * slope_end), slopes 0 or 1; empty when end <= begin.
struct MovingInterval {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t slope_begin = 0;
  std::int64_t slope_end = 0;

  [[nodiscard]] constexpr PositionRange at(std::int64_t query) const {
    return {begin + slope_begin * query, end + slope_end * query};
  }
};

/// Queries that share one rule. The two intervals never overlap, and `keys[0]` lies before `keys[1]`.
struct MaskPiece {
  PositionRange queries;
  std::array<MovingInterval, 2> keys;
};

class AttentionMask {
 public:
  /// Every token of a document sees every token of it.
  /// @param offsets [documents + 1] ascending from 0; equal neighbours are documents of length zero
  [[nodiscard]] static AttentionMask no_mask(std::span<const std::int64_t> offsets);
  /// A token sees itself and what stands before it in its document.
  [[nodiscard]] static AttentionMask causal(std::span<const std::int64_t> offsets);

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

 private:
  std::vector<MaskPiece> pieces_;
};

}  // namespace hcp
