/// The order in which chunks of keys add to dq of a query tile.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/tile_schedule.hpp"

namespace hcp {

/// Ascending by key. Tasks must begin in this order, then whoever waits waits for a task that has begun.
class TurnOrder {
 public:
  /// @param bounds as chunk_bounds gives them
  TurnOrder(std::span<const QueryTile> tiles, std::span<const std::int32_t> bounds, std::int64_t heads_kv);

  /// Returns when every chunk before the one of key `chunk_begin` that visits tile `tile` has passed.
  void wait_for_turn(std::int64_t kv_head, std::size_t tile, std::int32_t chunk_begin) const;
  void pass(std::int64_t kv_head, std::size_t tile);

 private:
  [[nodiscard]] std::size_t counter_of(std::int64_t kv_head, std::size_t tile) const;

  std::size_t tiles_;
  std::vector<std::vector<std::int32_t>> chunk_begins_;  ///< [tiles] of the chunks that visit each
  std::vector<std::atomic<std::int32_t>> passed_;        ///< [heads_kv, tiles]
};

}  // namespace hcp
