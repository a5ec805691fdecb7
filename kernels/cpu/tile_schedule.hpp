/// Which rows of queries visit which key rows of a block.
///
/// A function of the mask and of the positions alone: neither the number of threads nor their timing changes
/// the order in which anything is summed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/tile_functions.hpp"
#include "kernels/row_keys.hpp"

namespace hcp {

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
