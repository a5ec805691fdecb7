#include "kernels/cpu/turn_order.hpp"

#include <algorithm>
#include <thread>

namespace hcp {

TurnOrder::TurnOrder(std::span<const QueryTile> tiles, std::span<const std::int32_t> bounds,
                     std::int64_t heads_kv)
    : tiles_{tiles.size()}, passed_(tiles_ * static_cast<std::size_t>(heads_kv)) {
  chunk_begins_.reserve(tiles_);
  for (const QueryTile& tile : tiles) {
    std::vector<std::int32_t>& begins = chunk_begins_.emplace_back();
    for (const KeyVisit& visit : tile.visits) {
      const std::int32_t begin = *(std::ranges::upper_bound(bounds, visit.begin) - 1);
      if (begins.empty() || begins.back() != begin) {
        begins.push_back(begin);
      }
    }
  }
}

void TurnOrder::wait_for_turn(std::int64_t kv_head, std::size_t tile, std::int32_t chunk_begin) const {
  constexpr int spins = 256;
  const std::vector<std::int32_t>& begins = chunk_begins_[tile];
  const auto before =
      static_cast<std::int32_t>(std::ranges::lower_bound(begins, chunk_begin) - begins.begin());
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
