#include "kernels/cpu/tile_schedule.hpp"

#include <algorithm>
#include <array>
#include <ranges>
#include <utility>

namespace hcp {
namespace {

/// Finds rows of a block by position.
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
  [[nodiscard]] std::int32_t rows_below(std::int64_t position) const {
    const auto after = std::ranges::upper_bound(positions_, position, {}, &PositionRange::begin);
    if (after == positions_.begin()) {
      return 0;
    }
    const auto index = static_cast<std::size_t>(after - positions_.begin()) - 1;
    const PositionRange& range = positions_[index];
    return static_cast<std::int32_t>(first_rows_[index] + std::min(position, range.end) - range.begin);
  }

 private:
  std::span<const PositionRange> positions_;
  std::vector<std::int64_t> first_rows_;
};

/// The key rows at the positions of `intervals`. What the block lacks between two intervals vanishes, so they
/// may become one.
RowKeys row_keys_of(const std::array<PositionRange, 2>& intervals, const RowIndex& keys) {
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

std::vector<RowKeys> all_row_keys(const AttentionMask& mask, std::span<const PositionRange> query_positions,
                                  std::span<const PositionRange> key_positions) {
  const RowIndex keys{key_positions};
  std::vector<RowKeys> row_keys(static_cast<std::size_t>(count_of(query_positions)));
  std::int64_t first_row = 0;
  for (const PositionRange& range : query_positions) {
    for (const MaskPiece& piece : mask.pieces_within(range)) {
      for (std::int64_t query = piece.queries.begin; query < piece.queries.end; ++query) {
        row_keys[static_cast<std::size_t>(first_row + query - range.begin)] =
            row_keys_of({piece.keys[0].at(query), piece.keys[1].at(query)}, keys);
      }
    }
    first_row += range.size();
  }
  return row_keys;
}

/// The key tiles that the rows see, each once, without turns.
std::vector<KeyVisit> visits_of(std::span<const RowKeys> rows) {
  std::vector<PositionRange> seen;
  seen.reserve(2 * rows.size());
  for (const RowKeys& keys : rows) {
    for (const int i : {0, 1}) {
      seen.push_back({keys.begin[i], keys.end[i]});
    }
  }
  std::vector<KeyVisit> visits;
  for (const PositionRange& range : normalised(std::move(seen))) {
    for (std::int64_t begin = range.begin; begin < range.end;) {
      const std::int64_t tile_end = (begin / tile_keys + 1) * tile_keys;
      const std::int64_t end = std::min(range.end, tile_end);
      if (!visits.empty() && visits.back().key_tile() == begin / tile_keys) {
        visits.back().end = static_cast<std::int32_t>(end);
      } else {
        visits.push_back({static_cast<std::int32_t>(begin), static_cast<std::int32_t>(end), 0});
      }
      begin = end;
    }
  }
  return visits;
}

}  // namespace

TileSchedule make_tile_schedule(const AttentionMask& mask, std::span<const PositionRange> query_positions,
                                std::span<const PositionRange> key_positions) {
  TileSchedule schedule;
  schedule.row_keys = all_row_keys(mask, query_positions, key_positions);
  const std::span<const RowKeys> row_keys = schedule.row_keys;
  for (std::size_t first = 0; first < row_keys.size(); first += tile_rows) {
    const std::size_t rows = std::min<std::size_t>(tile_rows, row_keys.size() - first);
    schedule.tiles.push_back(
        {static_cast<std::int64_t>(first), static_cast<int>(rows), visits_of(row_keys.subspan(first, rows))});
  }
  std::ranges::reverse(schedule.tiles);

  const auto key_tiles = (count_of(key_positions) + tile_keys - 1) / tile_keys;
  schedule.visitors.resize(static_cast<std::size_t>(key_tiles));
  for (QueryTile& tile : schedule.tiles) {
    for (KeyVisit& visit : tile.visits) {
      visit.turn = schedule.visitors[static_cast<std::size_t>(visit.key_tile())]++;
    }
  }
  return schedule;
}

}  // namespace hcp
