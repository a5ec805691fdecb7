/// The way of a block that owns keys through the queries that see them.
#pragma once

#include <cstdint>

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/kernel_parameters.hpp"

namespace hcp::cuda {

/// A tile of queries of one head.
struct QueryVisit {
  std::int32_t head;
  std::int32_t first_row;
  bool full;
};

/// Walks through the visits of a block, head by head. Remembers little, because kernels are short of
/// registers: what changes from head to head only is found again.
class QueryVisits {
 public:
  HCP_DEVICE QueryVisits(const BlockShape& shape, const TileSchedule& schedule, int tile_rows)
      : shape_{shape},
        schedule_{schedule},
        tile_rows_{tile_rows},
        visit_{work().begin},
        head_{first_head() > 0 ? first_head() : 0} {
    if (visit_ == work().end) {
      head_ = shape.heads_q;
    }
  }

  HCP_DEVICE int tile() const { return work().tile; }
  HCP_DEVICE bool done() const {
    return head_ >= shape_.heads_q || head_ >= first_head() + shape_.queries_per_kv;
  }
  HCP_DEVICE QueryVisit current() const {
    const TileVisit visit = schedule_.visits[visit_];
    return {head_, visit.tile * tile_rows_, visit.full != 0};
  }
  HCP_DEVICE void advance() {
    if (++visit_ == work().end) {
      visit_ = work().begin;
      ++head_;
    }
  }

 private:
  HCP_DEVICE const TileWork& work() const { return schedule_.work[device::block_x()]; }
  /// Of those that share the KV head; some may be on other ranks.
  HCP_DEVICE int first_head() const {
    return (shape_.first_kv_head + device::block_y()) * shape_.queries_per_kv - shape_.first_query_head;
  }

  const BlockShape& shape_;
  const TileSchedule& schedule_;
  int tile_rows_;
  int visit_;
  int head_;
};

}  // namespace hcp::cuda
