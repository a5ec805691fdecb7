#include "kernels/cpu/block_dropout.hpp"

#include <algorithm>

namespace hcp {

BlockDropout::BlockDropout(const Dropout& dropout, std::span<const PositionRange> queries,
                           std::span<const PositionRange> keys, std::int64_t first_head, std::int64_t heads)
    : threshold_{dropout.threshold()}, scale_{static_cast<float>(dropout.scale())} {
  std::vector<std::size_t> documents;
  for (const PositionRange& range : queries) {
    for (std::int64_t query = range.begin; query < range.end;) {
      const std::size_t document = dropout.document_of(query);
      if (documents.empty() || documents.back() != document) {
        documents.push_back(document);
      }
      const std::int64_t first_query = dropout.query_offsets[document];
      const std::int64_t end = std::min(range.end, dropout.query_offsets[document + 1]);
      for (; query < end; ++query) {
        queries_.push_back({.place = static_cast<std::uint32_t>(query - first_query),
                            .first_key = static_cast<std::uint32_t>(dropout.key_offsets[document]),
                            .document = static_cast<std::uint32_t>(documents.size() - 1)});
      }
    }
  }
  documents_ = std::ssize(documents);
  streams_.reserve(static_cast<std::size_t>(heads) * documents.size());
  for (std::int64_t head = first_head; head < first_head + heads; ++head) {
    for (const std::size_t document : documents) {
      streams_.push_back(dropout_stream(dropout, document, head));
    }
  }
  std::int32_t row = 0;
  for (const PositionRange& range : keys) {
    stretches_.push_back({row, static_cast<std::uint32_t>(range.begin)});
    row += static_cast<std::int32_t>(range.size());
  }
}

RowsDropout BlockDropout::of(std::int64_t first_row, std::int64_t head) const {
  return {.queries = queries_.data() + first_row,
          .streams = streams_.data() + head * documents_,
          .stretches = stretches_.data(),
          .stretch_count = static_cast<int>(stretches_.size()),
          .threshold = threshold_,
          .scale = scale_};
}

}  // namespace hcp
