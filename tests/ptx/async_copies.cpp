#include "tests/ptx/async_copies.hpp"

#include <cstddef>
#include <cstring>
#include <utility>

#include "tests/ptx/block.hpp"
#include "tests/ptx/lane_loop.hpp"
#include "tests/ptx/warp.hpp"

namespace hcp::ptx {

void AsyncCopies::reset() {
  batches_.clear();
  committed_.fill(0);
}

void AsyncCopies::add(Batch batch) {
  batch.group = committed_;
  batches_.push_back(batch);
}

void AsyncCopies::commit(LaneMask mask) {
  for_each_lane(mask, [&](int lane) { ++committed_[static_cast<std::size_t>(lane)]; });
}

void AsyncCopies::wait(Warp& warp, LaneMask mask, std::uint32_t kept) {
  for (Batch& batch : batches_) {
    LaneMask due = 0;
    for_each_lane(mask & batch.lanes, [&](int lane) {
      const auto l = static_cast<std::size_t>(lane);
      due |= static_cast<LaneMask>(batch.group[l] + kept < committed_[l]) << lane;
    });
    land(warp, batch, due);
  }
  std::erase_if(batches_, [](const Batch& batch) { return batch.lanes == 0; });
}

void AsyncCopies::wait_all(Warp& warp, LaneMask mask) {
  commit(mask);
  wait(warp, mask, 0);
}

LaneMask AsyncCopies::pending(LaneMask mask) const {
  LaneMask found = 0;
  for (const Batch& batch : batches_) {
    found |= batch.lanes & mask;
  }
  return found;
}

void AsyncCopies::land(Warp& warp, Batch& batch, LaneMask lanes) {
  batch.lanes &= ~lanes;
  for_each_lane(lanes, [&](int lane) {
    const auto l = static_cast<std::size_t>(lane);
    std::byte* target = warp.shared_data(batch.target[l]);
    if (batch.source_bytes[l] > 0) {  // else the source may be null
      std::memcpy(target, reinterpret_cast<const void*>(batch.source[l]), batch.source_bytes[l]);
    }
    std::memset(target + batch.source_bytes[l], 0, batch.bytes - batch.source_bytes[l]);
    if (warp.block().launch().options.races) {
      warp.block().shared().note_async_landing(
          {warp.clock(), lane, batch.target[l] - shared_window, batch.bytes});
    }
  });
}

}  // namespace hcp::ptx
