/// How the work of a block is cut into tasks for threads. No bit of a result depends on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/attention_kernel.hpp"
#include "kernels/cpu/tile_schedule.hpp"

namespace hcp {

/// Query heads [begin, end) that use one KV head.
struct HeadGroup {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// Runs of query rows begin at multiples of it: a whole register tile on every processor.
inline constexpr std::int64_t row_granule = 6;

/// One per KV head, perhaps empty.
[[nodiscard]] std::vector<HeadGroup> head_groups(const HeadMap& map, std::int64_t heads_q,
                                                 std::int64_t heads_kv);

/// Where runs of query rows with about equally many visible keys begin, and the end. Each run with one KV
/// head is a task, and packs the keys that it sees.
[[nodiscard]] std::vector<std::int64_t> row_bounds(std::span<const RowKeys> row_keys, std::int64_t heads_q,
                                                   std::int64_t heads_kv, int threads);

/// For each chunk of `chunk_keys` keys of the block, the runs of query rows in which one sees a key of it:
/// ascending, apart from each other, from and to multiples of row_granule or the last row.
[[nodiscard]] std::vector<std::vector<RowSpan>> rows_by_chunk(std::span<const RowKeys> row_keys,
                                                              std::int32_t keys, std::int32_t chunk_keys);

/// Where chunks of the key block begin, and the end: multiples of tile_keys, about equally far and at most
/// `most_keys` apart. Each chunk with one KV head is a task.
[[nodiscard]] std::vector<std::int32_t> chunk_bounds(std::int32_t keys, std::int32_t most_keys,
                                                     std::int64_t heads_kv, int threads);

}  // namespace hcp
