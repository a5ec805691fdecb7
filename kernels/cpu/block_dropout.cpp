#include "kernels/cpu/block_dropout.hpp"

namespace hcp {

BlockDropout::BlockDropout(const Dropout& dropout, std::span<const PositionRange> queries,
                           std::span<const PositionRange> keys, std::int64_t first_head, std::int64_t heads)
    : tables_{dropout_tables(dropout, queries, first_head, heads)},
      threshold_{dropout.threshold()},
      scale_{static_cast<float>(dropout.scale())} {
  std::int32_t row = 0;
  for (const PositionRange& range : keys) {
    stretches_.push_back({row, static_cast<std::uint32_t>(range.begin)});
    row += static_cast<std::int32_t>(range.size());
  }
}

RowsDropout BlockDropout::of(std::int64_t first_row, std::int64_t head) const {
  return {.queries = tables_.queries.data() + first_row,
          .streams = tables_.streams.data() + head * tables_.documents,
          .stretches = stretches_.data(),
          .stretch_count = static_cast<int>(stretches_.size()),
          .threshold = threshold_,
          .scale = scale_};
}

}  // namespace hcp
