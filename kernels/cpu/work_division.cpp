#include "kernels/cpu/work_division.hpp"

#include <algorithm>

namespace hcp {
namespace {

/// Parts of each head's work: at least `least` and, unless that is more than `most`, several for every
/// thread; if few, then as many for one as for another.
std::int64_t parts_per_head(std::int64_t least, std::int64_t most, std::int64_t several, std::int64_t heads,
                            int threads) {
  const std::int64_t wanted = threads == 1 ? 1 : (several * threads + heads - 1) / heads;
  std::int64_t parts = std::max(least, std::min(wanted, most));
  while (parts * heads < 2 * several * threads && parts * heads % threads != 0 && parts < most) {
    ++parts;
  }
  return parts;
}

}  // namespace

std::vector<HeadGroup> head_groups(const HeadMap& map, std::int64_t heads_q, std::int64_t heads_kv) {
  std::vector<HeadGroup> groups(static_cast<std::size_t>(heads_kv));
  for (std::int64_t head = heads_q - 1; head >= 0; --head) {
    HeadGroup& group = groups[static_cast<std::size_t>(map.kv_head_of(head))];
    group.begin = head;
    group.end = std::max(group.end, head + 1);
  }
  return groups;
}

std::vector<std::int64_t> row_bounds(std::span<const RowKeys> row_keys, std::int64_t heads_q,
                                     std::int64_t heads_kv, int threads) {
  constexpr std::int64_t longest = 4096;  // rows of a head: so out stays in the caches from chunk to chunk
  constexpr std::int64_t several = 2;     // packing all keys costs as much as a few rows
  const std::int64_t rows = std::ssize(row_keys);
  if (rows == 0 || heads_kv == 0) {
    return {0};
  }
  const std::int64_t pairs = rows * heads_q / heads_kv;
  const std::int64_t parts = parts_per_head(
      (pairs + longest - 1) / longest, (rows + row_granule - 1) / row_granule, several, heads_kv, threads);
  std::int64_t visible = 0;
  for (const RowKeys& keys : row_keys) {
    visible += count_of(keys);
  }
  std::vector<std::int64_t> bounds{0};
  std::int64_t before = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    if (row % row_granule == 0 && row > bounds.back() && before * parts >= visible * std::ssize(bounds)) {
      bounds.push_back(row);
    }
    before += count_of(row_keys[static_cast<std::size_t>(row)]);
  }
  bounds.push_back(rows);
  return bounds;
}

std::vector<std::vector<RowSpan>> rows_by_chunk(std::span<const RowKeys> row_keys, std::int32_t keys,
                                                std::int32_t chunk_keys) {
  std::vector<std::vector<RowSpan>> by_chunk(static_cast<std::size_t>((keys + chunk_keys - 1) / chunk_keys));
  const std::int64_t rows = std::ssize(row_keys);
  for (std::int64_t row = 0; row < rows; ++row) {
    const RowKeys& seen = row_keys[static_cast<std::size_t>(row)];
    const std::int64_t first = row / row_granule * row_granule;
    const std::int64_t end = std::min(first + row_granule, rows);
    for (const int i : {0, 1}) {
      for (std::int32_t key = seen.begin[i]; key < seen.end[i]; key = (key / chunk_keys + 1) * chunk_keys) {
        std::vector<RowSpan>& spans = by_chunk[static_cast<std::size_t>(key / chunk_keys)];
        if (spans.empty() || spans.back().first + spans.back().count < first) {
          spans.push_back({first, end - first});
        } else {
          spans.back().count = end - spans.back().first;
        }
      }
    }
  }
  return by_chunk;
}

std::vector<std::int32_t> chunk_bounds(std::int32_t keys, std::int32_t most_keys, std::int64_t heads_kv,
                                       int threads) {
  constexpr std::int64_t several = 4;
  const std::int64_t tiles = (keys + tile_keys - 1) / tile_keys;
  const std::int64_t most_tiles = most_keys / tile_keys;
  if (tiles == 0 || heads_kv == 0) {
    return {0};
  }
  const std::int64_t parts =
      parts_per_head((tiles + most_tiles - 1) / most_tiles, tiles, several, heads_kv, threads);
  // The longer ones first: threads that follow each other through the tiles then go at the same pace.
  std::vector<std::int32_t> bounds;
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t tile = part * (tiles / parts) + std::min(part, tiles % parts);
    bounds.push_back(static_cast<std::int32_t>(tile * tile_keys));
  }
  bounds.push_back(keys);
  return bounds;
}

}  // namespace hcp
