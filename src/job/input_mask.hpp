/// Attention masks that a user brings, as key ranges in an HDF5 file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hcp {

/// Reads the dataset intervals [query rows, 4] of integers: two half-open ranges of global keys per query, as
/// begin, end, begin, end. It has the queries of one row of the micro-batch, or those of all rows.
///
/// @param row_queries, all_queries  how many these are
/// @return [rows of the dataset, 4]; the ranges are not checked
/// @throws std::invalid_argument if the file is missing, truncated or not HDF5, or the dataset is missing or
/// has another shape or type
[[nodiscard]] std::vector<std::int64_t> read_mask_intervals(const std::string& path, std::int64_t row_queries,
                                                            std::int64_t all_queries);

}  // namespace hcp
