/// Sets of global token positions, kept as sorted, disjoint, non-adjacent half-open ranges.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hcp {

/// Global token positions [begin, end). Positions count the tokens of all packed rows of a micro-batch.
struct PositionRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  [[nodiscard]] constexpr std::int64_t size() const { return end - begin; }
  [[nodiscard]] constexpr bool empty() const { return end <= begin; }
  friend bool operator==(const PositionRange&, const PositionRange&) = default;
};

/// Ranges in ascending order, none empty, none touching the next: equal sets have equal representations.
using PositionSet = std::vector<PositionRange>;

/// The set that any collection of ranges covers (empty ranges and overlaps are allowed in `ranges`).
[[nodiscard]] PositionSet normalised(std::vector<PositionRange> ranges);
[[nodiscard]] PositionSet set_union(const PositionSet& a, const PositionSet& b);
[[nodiscard]] PositionSet set_intersection(const PositionSet& a, const PositionSet& b);
[[nodiscard]] PositionSet set_difference(const PositionSet& a, const PositionSet& b);

/// Number of positions.
[[nodiscard]] std::int64_t count_of(std::span<const PositionRange> set);

/// Rows [first, first + count) of a tensor whose rows are the positions of some set in ascending order.
struct RowSpan {
  std::int64_t first = 0;
  std::int64_t count = 0;
  friend bool operator==(const RowSpan&, const RowSpan&) = default;
};

/// Where the positions of `part` stand in a tensor that holds `whole`, in ascending order, merged where
/// adjacent.
/// @throws std::logic_error if `part` is not a subset of `whole`
[[nodiscard]] std::vector<RowSpan> rows_of(const PositionSet& part, const PositionSet& whole);

/// The positions of rows `rows` of a tensor that holds `whole`.
[[nodiscard]] PositionSet positions_of(RowSpan rows, const PositionSet& whole);

}  // namespace hcp
