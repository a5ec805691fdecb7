#include "src/job/checked_rows.hpp"

#include <algorithm>

namespace hcp {

SelectedRows spread_rows(const PositionSet& shard, std::int64_t count) {
  const std::int64_t all = count_of(shard);
  SelectedRows selected;
  for (std::int64_t i = 0; i < std::min(all, count); ++i) {
    selected.rows.push_back(count >= all ? i : i * (all - 1) / (count - 1));
  }
  std::size_t chunk = 0;
  std::int64_t rows_before = 0;
  for (const std::int64_t row : selected.rows) {
    while (row - rows_before >= shard[chunk].size()) {
      rows_before += shard[chunk].size();
      ++chunk;
    }
    const std::int64_t position = shard[chunk].begin + row - rows_before;
    selected.positions.push_back(position);
    selected.chunks.push_back(chunk);
    selected.set.push_back({position, position + 1});
  }
  selected.set = normalised(std::move(selected.set));
  return selected;
}

void GatheredRows::gather(const GatherDoubles& gather) {
  const std::vector<double> received = gather(sent_);
  for (auto next = received.begin(); next != received.end();) {
    const auto head = static_cast<std::int64_t>(next[0]);
    const PositionRange range{static_cast<std::int64_t>(next[1]), static_cast<std::int64_t>(next[2])};
    next += 3;
    std::copy_n(next, range.size(), values_.begin() + (head - heads_.first) * tokens_ + range.begin);
    next += range.size();
  }
}

}  // namespace hcp
