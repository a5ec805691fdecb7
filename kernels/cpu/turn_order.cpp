#include "kernels/cpu/turn_order.hpp"

#include <algorithm>
#include <thread>

namespace hcp {

std::vector<std::vector<std::size_t>> tiles_by_chunk(std::span<const QueryTile> tiles,
                                                     std::span<const std::int32_t> bounds) {
  std::vector<std::vector<std::size_t>> by_chunk(bounds.size() - 1);
  if (by_chunk.empty()) {  // no head to do them for
    return by_chunk;
  }
  for (std::size_t tile = 0; tile < tiles.size(); ++tile) {
    for (const KeyVisit& visit : tiles[tile].visits) {
      const auto chunk = std::ranges::upper_bound(bounds, visit.begin) - bounds.begin() - 1;
      std::vector<std::size_t>& visitors = by_chunk[static_cast<std::size_t>(chunk)];
      if (visitors.empty() || visitors.back() != tile) {
        visitors.push_back(tile);
      }
    }
  }
  return by_chunk;
}

TurnOrder::TurnOrder(std::size_t tiles, const std::vector<std::vector<std::size_t>>& tiles_of_chunks,
                     std::int64_t heads_kv)
    : tiles_{tiles}, chunks_(tiles), passed_(tiles * static_cast<std::size_t>(heads_kv)) {
  for (std::size_t chunk = 0; chunk < tiles_of_chunks.size(); ++chunk) {
    for (const std::size_t tile : tiles_of_chunks[chunk]) {
      chunks_[tile].push_back(chunk);
    }
  }
}

void TurnOrder::wait_for_turn(std::int64_t kv_head, std::size_t tile, std::size_t chunk) const {
  constexpr int spins = 256;
  const std::vector<std::size_t>& chunks = chunks_[tile];
  const auto before = static_cast<std::int32_t>(std::ranges::lower_bound(chunks, chunk) - chunks.begin());
  const std::atomic<std::int32_t>& passed = passed_[counter_of(kv_head, tile)];
  for (int spin = 0; passed.load(std::memory_order_acquire) != before; ++spin) {
    if (spin >= spins) {
      std::this_thread::yield();  // whoever is waited for may need this core
    }
  }
}

void TurnOrder::pass(std::int64_t kv_head, std::size_t tile) {
  passed_[counter_of(kv_head, tile)].fetch_add(1, std::memory_order_release);
}

std::size_t TurnOrder::counter_of(std::int64_t kv_head, std::size_t tile) const {
  return static_cast<std::size_t>(kv_head) * tiles_ + tile;
}

}  // namespace hcp
