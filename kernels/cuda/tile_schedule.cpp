#include "kernels/cuda/tile_schedule.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

namespace hcp::cuda {
namespace {

/// Tiles [begin, end) of the other side.
struct Tiles {
  std::int32_t begin = 0;
  std::int32_t end = 0;
  friend bool operator==(const Tiles&, const Tiles&) = default;
};

/// One row in whole key tiles, by interval: those of which it sees a key, and those of which it sees all.
struct RowTiles {
  std::array<Tiles, 2> seen;
  std::array<Tiles, 2> whole;
  friend bool operator==(const RowTiles&, const RowTiles&) = default;
};

RowTiles tiles_of(const RowKeys& row, int tile_keys) {
  RowKeys keys = row;
  if (keys.end[0] == keys.begin[1] && keys.begin[1] < keys.end[1]) {  // one interval in two parts
    keys = {{row.begin[0], 0}, {row.end[1], 0}};
  }
  RowTiles tiles;
  for (const std::size_t i : {0U, 1U}) {
    if (keys.begin[i] < keys.end[i]) {
      tiles.seen[i] = {keys.begin[i] / tile_keys, (keys.end[i] - 1) / tile_keys + 1};
      // Written so that nothing overflows near 2^31.
      const Tiles whole{(keys.begin[i] / tile_keys) + (keys.begin[i] % tile_keys != 0 ? 1 : 0),
                        keys.end[i] / tile_keys};
      tiles.whole[i] = whole.begin < whole.end ? whole : Tiles{};
    }
  }
  return tiles;
}

/// Tiles are fewer than 2^30: blocks have less than 2^31 rows, and tiles more than one.
TileVisit visit_of(std::int32_t tile, bool full) {
  return {.tile = tile & 0x3FFF'FFFF, .full = full ? 1U : 0U};
}

/// From key tile `tile` on, so many more intervals are seen, and so many more rows see all of a tile.
struct Change {
  std::int32_t tile;
  std::int32_t seen;
  std::int32_t whole;
};

/// Appends to `visits` those of one tile of rows. Neighbouring rows mostly see the same tiles, so few changes
/// are left to be sorted.
class RowTileSweep {
 public:
  explicit RowTileSweep(TileRows tile) : tile_{tile} {}

  void append_visits(std::span<const RowKeys> rows, std::vector<TileVisit>& visits) {
    collect(rows);
    std::ranges::sort(changes_, {}, &Change::tile);
    std::int32_t seen = 0;
    std::int32_t whole = 0;
    for (std::size_t i = 0; i < changes_.size();) {
      const std::int32_t begin = changes_[i].tile;
      for (; i < changes_.size() && changes_[i].tile == begin; ++i) {
        seen += changes_[i].seen;
        whole += changes_[i].whole;
      }
      if (seen > 0) {  // then it ends: another change follows
        const bool full = whole == tile_.queries;
        for (std::int32_t tile = begin; tile < changes_[i].tile; ++tile) {
          visits.push_back(visit_of(tile, full));
        }
      }
    }
  }

 private:
  void collect(std::span<const RowKeys> rows) {
    changes_.clear();
    for (std::size_t row = 0; row < rows.size();) {
      const RowTiles tiles = tiles_of(rows[row], tile_.keys);
      std::int32_t alike = 0;
      for (; row < rows.size() && tiles_of(rows[row], tile_.keys) == tiles; ++row) {
        ++alike;
      }
      for (const std::size_t i : {0U, 1U}) {
        add({tiles.seen[i].begin, 1, 0}, {tiles.seen[i].end, -1, 0});
        add({tiles.whole[i].begin, 0, alike}, {tiles.whole[i].end, 0, -alike});
      }
    }
  }

  void add(const Change& begin, const Change& end) {
    if (begin.tile < end.tile) {
      changes_.push_back(begin);
      changes_.push_back(end);
    }
  }

  TileRows tile_;
  std::vector<Change> changes_;
};

/// Visits of query tile i are [ends[i - 1], ends[i]), those of the first begin at 0.
struct VisitLists {
  std::vector<TileVisit> visits;
  std::vector<std::int32_t> ends;
};

VisitLists visits_of_query_tiles(std::span<const RowKeys> row_keys, TileRows tile) {
  VisitLists lists;
  RowTileSweep sweep{tile};
  const auto tile_rows = static_cast<std::size_t>(tile.queries);
  for (std::size_t first = 0; first < row_keys.size(); first += tile_rows) {
    sweep.append_visits(row_keys.subspan(first, std::min(tile_rows, row_keys.size() - first)), lists.visits);
    if (lists.visits.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
      throw std::invalid_argument{"a block of " + std::to_string(row_keys.size()) +
                                  " rows of queries has more than 2^31 - 1 visits of tiles; cut the block"};
    }
    lists.ends.push_back(static_cast<std::int32_t>(lists.visits.size()));
  }
  return lists;
}

/// By key tile what was by query tile.
VisitLists transposed(const VisitLists& by_query, std::int32_t key_tiles) {
  VisitLists by_key{.visits = std::vector<TileVisit>(by_query.visits.size()),
                    .ends = std::vector<std::int32_t>(static_cast<std::size_t>(key_tiles))};
  std::vector<std::int32_t> next(static_cast<std::size_t>(key_tiles) + 1);
  for (const TileVisit& visit : by_query.visits) {
    ++next[static_cast<std::size_t>(visit.tile) + 1];
  }
  for (std::size_t tile = 0; tile < by_key.ends.size(); ++tile) {
    next[tile + 1] += next[tile];
    by_key.ends[tile] = next[tile + 1];
  }
  std::int32_t begin = 0;
  for (std::size_t query_tile = 0; query_tile < by_query.ends.size(); ++query_tile) {
    for (; begin < by_query.ends[query_tile]; ++begin) {
      const TileVisit& visit = by_query.visits[static_cast<std::size_t>(begin)];
      std::int32_t& place = next[static_cast<std::size_t>(visit.tile)];
      by_key.visits[static_cast<std::size_t>(place++)] =
          visit_of(static_cast<std::int32_t>(query_tile), visit.full == 1);
    }
  }
  return by_key;
}

TileScheduleData schedule_of(VisitLists lists) {
  TileScheduleData schedule;
  std::int32_t begin = 0;
  for (std::size_t tile = 0; tile < lists.ends.size(); begin = lists.ends[tile++]) {
    if (begin < lists.ends[tile]) {
      schedule.work.push_back({static_cast<std::int32_t>(tile), begin, lists.ends[tile]});
    }
  }
  std::ranges::stable_sort(schedule.work, std::ranges::greater{},
                           [](const TileWork& work) { return work.end - work.begin; });
  schedule.visits = std::move(lists.visits);
  return schedule;
}

}  // namespace

TileScheduleData query_tile_schedule(std::span<const RowKeys> row_keys, TileRows tile) {
  return schedule_of(visits_of_query_tiles(row_keys, tile));
}

TileScheduleData key_tile_schedule(std::span<const RowKeys> row_keys, std::int32_t keys, TileRows tile) {
  const std::int32_t key_tiles = keys / tile.keys + (keys % tile.keys != 0 ? 1 : 0);
  return schedule_of(transposed(visits_of_query_tiles(row_keys, tile), key_tiles));
}

}  // namespace hcp::cuda
