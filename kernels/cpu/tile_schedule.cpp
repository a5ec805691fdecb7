#include "kernels/cpu/tile_schedule.hpp"

#include <algorithm>
#include <ranges>
#include <utility>

namespace hcp {
namespace {

/// The key tiles that the rows see, each once.
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
      if (!visits.empty() && visits.back().begin / tile_keys == begin / tile_keys) {
        visits.back().end = static_cast<std::int32_t>(end);
      } else {
        visits.push_back({static_cast<std::int32_t>(begin), static_cast<std::int32_t>(end)});
      }
      begin = end;
    }
  }
  return visits;
}

}  // namespace

std::span<const KeyVisit> QueryTile::visits_within(std::int32_t begin, std::int32_t end) const {
  const auto first = std::ranges::lower_bound(visits, begin, {}, &KeyVisit::begin);
  const auto last = std::ranges::lower_bound(visits, end, {}, &KeyVisit::begin);
  return {first, last};
}

std::vector<QueryTile> query_tiles(std::span<const RowKeys> row_keys) {
  std::vector<QueryTile> tiles;
  for (std::size_t first = 0; first < row_keys.size(); first += tile_rows) {
    const std::size_t rows = std::min<std::size_t>(tile_rows, row_keys.size() - first);
    tiles.push_back(
        {static_cast<std::int64_t>(first), static_cast<int>(rows), visits_of(row_keys.subspan(first, rows))});
  }
  return tiles;
}

}  // namespace hcp
