/// Which tile of query rows visits which keys of a block, and in which order.
///
/// A function of the mask and of the positions alone: neither the number of threads nor their timing changes
/// the order in which anything is summed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/attention_mask.hpp"
#include "kernels/cpu/tile_functions.hpp"
#include "kernels/position_ranges.hpp"

namespace hcp {

/// One key tile as one query tile sees it. Key tiles are [i * tile_keys, (i + 1) * tile_keys) of the block.
struct KeyVisit {
  std::int32_t begin = 0;  ///< first key row that a row of the query tile sees
  std::int32_t end = 0;    ///< one past the last; at least one pair in between is visible
  std::int32_t turn = 0;   ///< query tiles that visit this key tile before, in the order of the schedule

  [[nodiscard]] std::int32_t key_tile() const { return begin / tile_keys; }
};

struct QueryTile {
  std::int64_t first_row = 0;
  int rows = 0;
  std::vector<KeyVisit> visits;  ///< ascending, none for a tile that sees nothing
};

struct TileSchedule {
  std::vector<RowKeys> row_keys;       ///< [query rows]
  std::vector<QueryTile> tiles;        ///< last rows first: under a causal mask they have most to do
  std::vector<std::int32_t> visitors;  ///< [key tiles] query tiles that visit each
};

/// Positions as in QueryBlock and KvBlock.
[[nodiscard]] TileSchedule make_tile_schedule(const AttentionMask& mask,
                                              std::span<const PositionRange> query_positions,
                                              std::span<const PositionRange> key_positions);

}  // namespace hcp
