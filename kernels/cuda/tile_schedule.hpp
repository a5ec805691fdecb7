/// Which tiles of rows of queries meet which tiles of key rows of a block, for kernels/cuda. On the host; no
/// CUDA.
///
/// A function of the mask and of the positions alone, so is the order of every sum.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cuda/kernel_parameters.hpp"
#include "kernels/query_rows.hpp"

namespace hcp::cuda {

/// What a TileSchedule points to. Tiles without a visit are no work; visits of a tile ascend. Work with most
/// visits comes first, ties by tile: what takes long does not begin last.
struct TileScheduleData {
  std::vector<TileWork> work;
  std::vector<TileVisit> visits;
};

/// Rows of queries and key rows in one tile.
struct TileRows {
  int queries = 0;
  int keys = 0;
};

/// Query tiles over the key tiles of which a row sees a key. A visit is full if all rows of a whole query
/// tile see all keys of a whole key tile: the rest of a last tile is never seen. O(row_keys + visits).
/// @param row_keys  as row_keys_of
/// @throws std::invalid_argument if there are 2^31 visits or more
[[nodiscard]] TileScheduleData query_tile_schedule(std::span<const RowKeys> row_keys, TileRows tile);

/// The same visits, key tiles over query tiles.
/// @param keys  key rows of the block
[[nodiscard]] TileScheduleData key_tile_schedule(std::span<const RowKeys> row_keys, std::int32_t keys,
                                                 TileRows tile);

}  // namespace hcp::cuda
