#include "src/comm/pinned_pool.hpp"

#include <algorithm>
#include <bit>

namespace hcp {
namespace {

constexpr std::int64_t least_bytes = std::int64_t{4} << 10;  // a page: what is pinned comes in pages

std::int64_t rounded_up(std::int64_t bytes) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max(bytes, least_bytes))));
}

}  // namespace

PinnedPool::Block* PinnedPool::take(std::int64_t bytes) {
  std::vector<std::unique_ptr<Block>>& idle = idle_[rounded_up(bytes)];
  if (idle.empty()) return std::make_unique<Block>(rounded_up(bytes)).release();
  Block* block = idle.back().release();
  idle.pop_back();
  return block;
}

void PinnedPool::give_back(Block* block) {
  idle_[block->capacity].emplace_back(block);
}

}  // namespace hcp
