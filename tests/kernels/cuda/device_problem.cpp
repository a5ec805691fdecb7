#include "tests/kernels/cuda/device_problem.hpp"

#include <algorithm>

#include "kernels/row_keys.hpp"

namespace hcp::test {
namespace {

std::int32_t tiles_of(std::int32_t rows, int tile_rows) {
  return (rows + tile_rows - 1) / tile_rows;
}

/// @param seen  (own, other) -> whether the pair is seen
template <typename Seen>
ScheduleTables schedule(std::int32_t own, int own_rows, std::int32_t others, int other_rows, bool hidden,
                        const Seen& seen) {
  ScheduleTables tables;
  for (std::int32_t tile = 0; tile < tiles_of(own, own_rows); ++tile) {
    const auto begin = static_cast<std::int32_t>(tables.visits.size());
    for (std::int32_t other = 0; other < tiles_of(others, other_rows); ++other) {
      std::int64_t pairs = 0;
      for (std::int32_t i = tile * own_rows; i < std::min(own, (tile + 1) * own_rows); ++i) {
        for (std::int32_t j = other * other_rows; j < std::min(others, (other + 1) * other_rows); ++j) {
          pairs += seen(i, j) ? 1 : 0;
        }
      }
      if (pairs > 0) {
        const bool full = !hidden && pairs == static_cast<std::int64_t>(own_rows) * other_rows;
        tables.visits.push_back({.tile = other & 0x3fff'ffff, .full = full ? 1U : 0U});
      }
    }
    tables.work.push_back({tile, begin, static_cast<std::int32_t>(tables.visits.size())});
  }
  return tables;
}

}  // namespace

DeviceProblem::DeviceProblem(const BlockRule& rule, const QueryBlock& query, const KvBlock& kv)
    : row_keys_{row_keys_of(*rule.mask, query.positions, kv.positions)} {
  shape_ = {.rows = static_cast<std::int32_t>(query.q.rows),
            .keys = static_cast<std::int32_t>(kv.k.rows),
            .heads_q = static_cast<std::int32_t>(query.q.heads),
            .heads_kv = static_cast<std::int32_t>(kv.k.heads),
            .dim_qk = static_cast<std::int32_t>(query.q.dim),
            .dim_v = static_cast<std::int32_t>(kv.v.dim),
            .first_query_head = static_cast<std::int32_t>(rule.heads.first_query_head),
            .first_kv_head = static_cast<std::int32_t>(rule.heads.first_kv_head),
            .queries_per_kv = static_cast<std::int32_t>(rule.heads.queries_per_kv),
            .softmax_scale = rule.softmax_scale};
  if (!rule.dropout.drops()) {
    return;
  }
  std::vector<std::size_t> documents;
  for (const PositionRange& range : query.positions) {
    for (std::int64_t position = range.begin; position < range.end; ++position) {
      const std::size_t document = rule.dropout.document_of(position);
      if (documents.empty() || documents.back() != document) {
        documents.push_back(document);
      }
      dropout_rows_.push_back({static_cast<std::uint32_t>(position - rule.dropout.query_offsets[document]),
                               static_cast<std::uint32_t>(rule.dropout.key_offsets[document]),
                               static_cast<std::uint32_t>(documents.size() - 1)});
    }
  }
  for (std::int64_t head = 0; head < query.q.heads; ++head) {
    for (const std::size_t document : documents) {
      streams_.push_back(dropout_stream(rule.dropout, document, rule.heads.first_query_head + head));
    }
  }
  for (const PositionRange& range : kv.positions) {
    for (std::int64_t position = range.begin; position < range.end; ++position) {
      key_positions_.push_back(static_cast<std::uint32_t>(position));
    }
  }
  dropout_.documents = static_cast<std::int32_t>(documents.size());
  dropout_.threshold = rule.dropout.threshold();
  dropout_.scale = static_cast<float>(rule.dropout.scale());
}

cuda::BlockShape DeviceProblem::shape() const {
  cuda::BlockShape shape = shape_;
  shape.row_keys = row_keys_.data();
  return shape;
}

cuda::DropoutTable DeviceProblem::dropout() const {
  cuda::DropoutTable table = dropout_;
  table.rows = dropout_rows_.data();
  table.streams = streams_.data();
  table.key_positions = key_positions_.data();
  return table;
}

bool DeviceProblem::sees(std::int64_t row, std::int64_t key) const {
  const RowKeys& keys = row_keys_[static_cast<std::size_t>(row)];
  return (key >= keys.begin[0] && key < keys.end[0]) || (key >= keys.begin[1] && key < keys.end[1]);
}

ScheduleTables DeviceProblem::query_schedule(int tile_queries, int tile_keys, bool hidden) const {
  return schedule(shape_.rows, tile_queries, shape_.keys, tile_keys, hidden,
                  [this](std::int32_t row, std::int32_t key) { return sees(row, key); });
}

ScheduleTables DeviceProblem::key_schedule(int tile_keys, int tile_queries, bool hidden) const {
  return schedule(shape_.keys, tile_keys, shape_.rows, tile_queries, hidden,
                  [this](std::int32_t key, std::int32_t row) { return sees(row, key); });
}

}  // namespace hcp::test
