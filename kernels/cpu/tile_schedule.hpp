/// Which rows of queries visit which key rows of a block.
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

/// The key rows that each query row sees: [query rows]. Positions as in QueryBlock and KvBlock.
[[nodiscard]] std::vector<RowKeys> row_keys_of(const AttentionMask& mask,
                                               std::span<const PositionRange> query_positions,
                                               std::span<const PositionRange> key_positions);

/// Key rows that a query row sees.
[[nodiscard]] inline std::int64_t count_of(const RowKeys& keys) {
  return keys.end[0] - keys.begin[0] + keys.end[1] - keys.begin[1];
}

struct QueryTile {
  std::int64_t first_row = 0;
  int rows = 0;
  std::vector<KeyVisit> visits;  ///< ascending, one per key tile of which a row sees a key

  /// The visits of keys [begin, end), both multiples of tile_keys or the end of the block.
  [[nodiscard]] std::span<const KeyVisit> visits_within(std::int32_t begin, std::int32_t end) const;
};

/// The rows in tiles, ascending.
[[nodiscard]] std::vector<QueryTile> query_tiles(std::span<const RowKeys> row_keys);

}  // namespace hcp
