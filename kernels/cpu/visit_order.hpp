/// The order in which the visitors of one key tile add to its dk and dv.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "kernels/attention_kernel.hpp"
#include "kernels/cpu/tile_schedule.hpp"

namespace hcp {

/// Query heads that share a KV head come one after the other; of one head, the tiles as they stand in the
/// schedule. Tasks must begin in this order, then whoever waits waits for a task that has begun.
class VisitOrder {
 public:
  VisitOrder(const TileSchedule& schedule, const HeadMap& heads, std::int64_t heads_q, std::int64_t heads_kv);

  /// Returns when everybody before this visit of query head `head` has passed.
  void wait_for_turn(std::int64_t head, const KeyVisit& visit) const;
  void pass(std::int64_t head, const KeyVisit& visit);

 private:
  struct Place {
    std::int64_t kv_head = 0;
    std::int32_t heads_before = 0;  ///< local query heads before this one that use the same KV head
  };

  [[nodiscard]] std::size_t counter_of(std::int64_t head, const KeyVisit& visit) const;

  const std::vector<std::int32_t>& visitors_;      ///< per key tile, of one query head
  std::vector<Place> places_;                      ///< [heads_q]
  std::vector<std::atomic<std::int32_t>> passed_;  ///< [heads_kv, key tiles]
};

}  // namespace hcp
