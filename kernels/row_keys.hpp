/// A mask between the rows of two blocks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/attention_mask.hpp"
#include "kernels/position_ranges.hpp"
#include "kernels/query_rows.hpp"

namespace hcp {

/// The key rows that each query row sees: [query rows]. Positions as in QueryBlock and KvBlock.
[[nodiscard]] std::vector<RowKeys> row_keys_of(const AttentionMask& mask,
                                               std::span<const PositionRange> query_positions,
                                               std::span<const PositionRange> key_positions);

/// Key rows that a query row sees.
[[nodiscard]] inline std::int64_t count_of(const RowKeys& keys) {
  return keys.end[0] - keys.begin[0] + keys.end[1] - keys.begin[1];
}

}  // namespace hcp
