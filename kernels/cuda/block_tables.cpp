#include "kernels/cuda/block_tables.hpp"

#include <cstdint>
#include <span>

#include "kernels/dropout_tables.hpp"

namespace hcp::cuda {
namespace {

/// Places of the tables; those of a schedule are two, work and visits, and come last.
enum Place : std::size_t {
  place_of_row_keys,
  place_of_queries,
  place_of_streams,
  place_of_keys,
  schedules_begin
};

template <typename Element>
std::span<const std::byte> bytes_of(const std::vector<Element>& table) {
  return std::as_bytes(std::span{table});
}

std::vector<std::uint32_t> positions_of_rows(std::span<const PositionRange> ranges) {
  std::vector<std::uint32_t> positions;
  positions.reserve(static_cast<std::size_t>(count_of(ranges)));
  for (const PositionRange& range : ranges) {
    for (std::int64_t position = range.begin; position < range.end; ++position) {
      positions.push_back(static_cast<std::uint32_t>(position));
    }
  }
  return positions;
}

BlockShape shape_of(const BlockRule& rule, const QueryBlock& query, const KvBlock& kv) {
  const auto narrow = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
  return {.rows = narrow(query.q.rows),
          .keys = narrow(kv.k.rows),
          .heads_q = narrow(query.q.heads),
          .heads_kv = narrow(kv.k.heads),
          .dim_qk = narrow(query.q.dim),
          .dim_v = narrow(kv.v.dim),
          .first_query_head = narrow(rule.heads.first_query_head),
          .first_kv_head = narrow(rule.heads.first_kv_head),
          .queries_per_kv = narrow(rule.heads.queries_per_kv),
          .softmax_scale = rule.softmax_scale};
}

DeviceTables uploaded(TableUpload& upload, const std::vector<RowKeys>& row_keys, const DropoutTables& dropout,
                      const std::vector<std::uint32_t>& key_positions,
                      const std::vector<TileScheduleData>& schedules) {
  std::vector<std::span<const std::byte>> tables{bytes_of(row_keys), bytes_of(dropout.queries),
                                                 bytes_of(dropout.streams), bytes_of(key_positions)};
  for (const TileScheduleData& schedule : schedules) {
    tables.push_back(bytes_of(schedule.work));
    tables.push_back(bytes_of(schedule.visits));
  }
  return upload.upload(tables);
}

}  // namespace

BlockTables::BlockTables(TableUpload& upload, const BlockRule& rule, const QueryBlock& query,
                         const KvBlock& kv, const std::vector<RowKeys>& row_keys,
                         const std::vector<TileScheduleData>& schedules)
    : shape_{shape_of(rule, query, kv)}, tables_{[&] {
        const bool drops = rule.dropout.drops();
        const DropoutTables dropout =
            drops ? dropout_tables(rule.dropout, query.positions, rule.heads.first_query_head, query.q.heads)
                  : DropoutTables{};
        if (drops) {
          dropout_ = {.documents = static_cast<std::int32_t>(dropout.documents),
                      .threshold = rule.dropout.threshold(),
                      .scale = static_cast<float>(rule.dropout.scale())};
        }
        return uploaded(upload, row_keys, dropout,
                        drops ? positions_of_rows(kv.positions) : std::vector<std::uint32_t>{}, schedules);
      }()} {
  shape_.row_keys = tables_.table<RowKeys>(place_of_row_keys);
  dropout_.rows = tables_.table<DropoutQuery>(place_of_queries);
  dropout_.streams = tables_.table<DropoutStream>(place_of_streams);
  dropout_.key_positions = tables_.table<std::uint32_t>(place_of_keys);
}

TileSchedule BlockTables::schedule(std::size_t index) const {
  return {.work = tables_.table<TileWork>(schedules_begin + 2 * index),
          .visits = tables_.table<TileVisit>(schedules_begin + 2 * index + 1)};
}

}  // namespace hcp::cuda
