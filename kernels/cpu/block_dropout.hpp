/// Dropout of one block of queries and keys, as plain data for its tiles.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/tile_functions.hpp"
#include "kernels/dropout_tables.hpp"
#include "kernels/position_ranges.hpp"

namespace hcp {

/// What drops in a block of attention, ready for the tiles of the kernels.
class BlockDropout {
 public:
  /// @param heads       query heads of the block
  /// @param first_head  what HeadMap calls the first of them
  BlockDropout(const Dropout& dropout, std::span<const PositionRange> queries,
               std::span<const PositionRange> keys, std::int64_t first_head, std::int64_t heads);

  /// Of query rows from `first_row` on, of one head of the block; refers to this object.
  [[nodiscard]] RowsDropout of(std::int64_t first_row, std::int64_t head) const;

 private:
  DropoutTables tables_;
  std::vector<KeyStretch> stretches_;
  std::int32_t threshold_;
  float scale_;
};

}  // namespace hcp
