#include "kernels/dropout_tables.hpp"

#include <algorithm>
#include <cstddef>

namespace hcp {

DropoutTables dropout_tables(const Dropout& dropout, std::span<const PositionRange> queries,
                             std::int64_t first_head, std::int64_t heads) {
  DropoutTables tables;
  tables.queries.reserve(static_cast<std::size_t>(count_of(queries)));
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
        tables.queries.push_back({.place = static_cast<std::uint32_t>(query - first_query),
                                  .first_key = static_cast<std::uint32_t>(dropout.key_offsets[document]),
                                  .document = static_cast<std::uint32_t>(documents.size() - 1)});
      }
    }
  }
  tables.documents = std::ssize(documents);
  tables.streams.reserve(static_cast<std::size_t>(heads) * documents.size());
  for (std::int64_t head = first_head; head < first_head + heads; ++head) {
    for (const std::size_t document : documents) {
      tables.streams.push_back(dropout_stream(dropout, document, head));
    }
  }
  return tables;
}

}  // namespace hcp
