/// Dropout of one block, as plain data: a table of queries and one of streams, so that the price of a head is
/// one stream per document.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/dropout.hpp"
#include "kernels/position_ranges.hpp"
#include "kernels/query_rows.hpp"

namespace hcp {

struct DropoutTables {
  std::vector<DropoutQuery> queries;   ///< [rows]
  std::vector<DropoutStream> streams;  ///< [heads, documents]
  std::int64_t documents = 0;          ///< of which the block has queries
};

/// @param queries     positions of the rows, ascending
/// @param first_head  what HeadMap calls the first query head of the block
/// @param heads       query heads of the block
[[nodiscard]] DropoutTables dropout_tables(const Dropout& dropout, std::span<const PositionRange> queries,
                                           std::int64_t first_head, std::int64_t heads);

}  // namespace hcp
