/// Dropout of one block of queries and keys, as plain data for its tiles.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/tile_functions.hpp"
#include "kernels/dropout.hpp"
#include "kernels/position_ranges.hpp"

namespace hcp {

/// A table of queries and one of streams: so that the price of a head is one stream per document.
class BlockDropout {
 public:
  /// @param heads       query heads of the block
  /// @param first_head  what HeadMap calls the first of them
  BlockDropout(const Dropout& dropout, std::span<const PositionRange> queries,
               std::span<const PositionRange> keys, std::int64_t first_head, std::int64_t heads);

  /// Of query rows from `first_row` on, of one head of the block; refers to this object.
  [[nodiscard]] RowsDropout of(std::int64_t first_row, std::int64_t head) const;

 private:
  std::vector<DropoutQuery> queries_;
  std::vector<DropoutStream> streams_;  ///< [heads, documents]
  std::int64_t documents_ = 0;
  std::vector<KeyStretch> stretches_;
  std::int32_t threshold_;
  float scale_;
};

}  // namespace hcp
