#include "kernels/row_keys.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace hcp {
namespace {

/// Finds rows of a block by position; quickly, if one question is near the one before.
class RowIndex {
 public:
  explicit RowIndex(std::span<const PositionRange> positions) : positions_{positions} {
    first_rows_.reserve(positions.size());
    std::int64_t row = 0;
    for (const PositionRange& range : positions) {
      first_rows_.push_back(row);
      row += range.size();
    }
  }

  /// Rows whose position is below `position`.
  [[nodiscard]] std::int32_t rows_below(std::int64_t position) {
    if (!lies_after(position, last_)) {
      const auto after = std::ranges::upper_bound(positions_, position, {}, &PositionRange::begin);
      if (after == positions_.begin()) {
        return 0;
      }
      last_ = static_cast<std::size_t>(after - positions_.begin()) - 1;
    }
    const PositionRange& range = positions_[last_];
    return static_cast<std::int32_t>(first_rows_[last_] + std::min(position, range.end) - range.begin);
  }

 private:
  /// Whether range `index` is the last that begins at or before `position`.
  [[nodiscard]] bool lies_after(std::int64_t position, std::size_t index) const {
    return index < positions_.size() && positions_[index].begin <= position &&
           (index + 1 == positions_.size() || position < positions_[index + 1].begin);
  }

  std::span<const PositionRange> positions_;
  std::vector<std::int64_t> first_rows_;
  std::size_t last_ = 0;
};

/// The key rows at the positions of `intervals`. What the block lacks between two intervals vanishes, so they
/// may become one.
RowKeys rows_at(const std::array<PositionRange, 2>& intervals, RowIndex& keys) {
  RowKeys rows{};
  int filled = 0;
  for (const PositionRange& interval : intervals) {
    if (interval.empty()) {
      continue;
    }
    const std::int32_t begin = keys.rows_below(interval.begin);
    const std::int32_t end = keys.rows_below(interval.end);
    if (begin == end) {
      continue;
    }
    if (filled > 0 && rows.end[0] == begin) {
      rows.end[0] = end;
      continue;
    }
    rows.begin[filled] = begin;
    rows.end[filled] = end;
    ++filled;
  }
  return rows;
}

}  // namespace

std::vector<RowKeys> row_keys_of(const AttentionMask& mask, std::span<const PositionRange> query_positions,
                                 std::span<const PositionRange> key_positions) {
  RowIndex keys{key_positions};
  std::vector<RowKeys> row_keys(static_cast<std::size_t>(count_of(query_positions)));
  std::int64_t first_row = 0;
  for (const PositionRange& range : query_positions) {
    for (const MaskPiece& piece : mask.pieces_within(range)) {
      for (std::int64_t query = piece.queries.begin; query < piece.queries.end; ++query) {
        row_keys[static_cast<std::size_t>(first_row + query - range.begin)] =
            rows_at({piece.keys[0].at(query), piece.keys[1].at(query)}, keys);
      }
    }
    first_row += range.size();
  }
  return row_keys;
}

}  // namespace hcp
