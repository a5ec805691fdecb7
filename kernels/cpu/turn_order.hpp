/// The order in which chunks of keys add to dq of a query tile.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/tile_schedule.hpp"

namespace hcp {

/// The tiles of which a row sees a key of each chunk, ascending: [chunks].
/// @param bounds as chunk_bounds gives them
[[nodiscard]] std::vector<std::vector<std::size_t>> tiles_by_chunk(std::span<const QueryTile> tiles,
                                                                   std::span<const std::int32_t> bounds);

/// Ascending by key. Tasks must begin in this order, then whoever waits waits for a task that has begun.
class TurnOrder {
 public:
  /// @param tiles_of_chunks as tiles_by_chunk gives them
  TurnOrder(std::size_t tiles, const std::vector<std::vector<std::size_t>>& tiles_of_chunks,
            std::int64_t heads_kv);

  /// Returns when every chunk before `chunk` that visits tile `tile` has passed.
  void wait_for_turn(std::int64_t kv_head, std::size_t tile, std::size_t chunk) const;
  void pass(std::int64_t kv_head, std::size_t tile);

 private:
  [[nodiscard]] std::size_t counter_of(std::int64_t kv_head, std::size_t tile) const;

  std::size_t tiles_;
  std::vector<std::vector<std::size_t>> chunks_;   ///< [tiles] that visit each, ascending
  std::vector<std::atomic<std::int32_t>> passed_;  ///< [heads_kv, tiles]
};

}  // namespace hcp
