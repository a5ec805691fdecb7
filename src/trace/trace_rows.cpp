#include "src/trace/trace_rows.hpp"

namespace hcp {
namespace {

template <typename Value>
constexpr ColumnType column_type() {
  if constexpr (std::is_same_v<Value, std::int32_t>) {
    return ColumnType::int32;
  } else if constexpr (std::is_same_v<Value, std::int64_t>) {
    return ColumnType::int64;
  } else if constexpr (std::is_same_v<Value, double>) {
    return ColumnType::float64;
  } else {
    return ColumnType::text;
  }
}

/// Type, offset and size come from the member itself, so that they cannot disagree with the struct.
template <typename Row, typename Value>
Column column(const char* name, const char* unit, Value Row::*member) {
  static const Row row{};
  const auto offset =
      reinterpret_cast<const std::byte*>(&(row.*member)) - reinterpret_cast<const std::byte*>(&row);
  return {name, unit, column_type<Value>(), static_cast<std::size_t>(offset), sizeof(Value)};
}

}  // namespace

std::vector<Column> CellRow::columns() {
  return {column("cell", "1", &CellRow::cell),         column("tokens", "1", &CellRow::tokens),
          column("scheme", "text", &CellRow::scheme),  column("sizes", "text", &CellRow::sizes),
          column("mask", "text", &CellRow::mask),      column("dtype", "text", &CellRow::dtype),
          column("pass", "text", &CellRow::pass),      column("nodes", "text", &CellRow::nodes),
          column("flops", "FLOP", &CellRow::flops),    column("peak_flops", "FLOP/s", &CellRow::peak_flops),
          column("options", "text", &CellRow::options)};
}

std::vector<Column> RankRow::columns() {
  return {column("rank", "1", &RankRow::rank),
          column("node", "1", &RankRow::node),
          column("local_rank", "1", &RankRow::local_rank),
          column("world_rank", "1", &RankRow::world_rank),
          column("host", "text", &RankRow::host),
          column("device", "text", &RankRow::device),
          column("nic", "text", &RankRow::nic),
          column("binding", "text", &RankRow::binding),
          column("clock_offset_start", "s", &RankRow::clock_offset_start),
          column("clock_offset_end", "s", &RankRow::clock_offset_end),
          column("clock_uncertainty", "s", &RankRow::clock_uncertainty)};
}

std::vector<Column> PlacementRow::columns() {
  return {column("cell", "1", &PlacementRow::cell),
          column("rank", "1", &PlacementRow::rank),
          column("tp", "1", &PlacementRow::tp),
          column("cp", "1", &PlacementRow::cp),
          column("dp", "1", &PlacementRow::dp),
          column("pp", "1", &PlacementRow::pp),
          column("level_coordinates", "text", &PlacementRow::level_coordinates),
          column("tokens", "1", &PlacementRow::tokens)};
}

std::vector<Column> EventRow::columns() {
  return {column("cell", "1", &EventRow::cell),       column("iteration", "1", &EventRow::iteration),
          column("rank", "1", &EventRow::rank),       column("layer", "1", &EventRow::layer),
          column("pass", "text", &EventRow::pass),    column("level", "1", &EventRow::level),
          column("step", "1", &EventRow::step),       column("kind", "text", &EventRow::kind),
          column("peer", "1", &EventRow::peer),       column("bytes", "B", &EventRow::bytes),
          column("t_begin", "s", &EventRow::t_begin), column("t_end", "s", &EventRow::t_end)};
}

std::vector<Column> MemoryRow::columns() {
  return {column("cell", "1", &MemoryRow::cell), column("rank", "1", &MemoryRow::rank),
          column("t", "s", &MemoryRow::t), column("category", "text", &MemoryRow::category),
          column("live_bytes", "B", &MemoryRow::live_bytes)};
}

std::vector<Column> BytesRow::columns() {
  return {column("cell", "1", &BytesRow::cell),
          column("rank", "1", &BytesRow::rank),
          column("peer", "1", &BytesRow::peer),
          column("across_nodes", "1", &BytesRow::across_nodes),
          column("level", "1", &BytesRow::level),
          column("pass", "text", &BytesRow::pass),
          column("tensor", "text", &BytesRow::tensor),
          column("bytes_counted", "B", &BytesRow::bytes_counted),
          column("messages_counted", "1", &BytesRow::messages_counted),
          column("bytes_planned", "B", &BytesRow::bytes_planned),
          column("messages_planned", "1", &BytesRow::messages_planned)};
}

std::vector<Column> ResultRow::columns() {
  return {column("cell", "1", &ResultRow::cell),
          column("state", "text", &ResultRow::state),
          column("reason", "text", &ResultRow::reason),
          column("time_min", "s", &ResultRow::time_min),
          column("time_median", "s", &ResultRow::time_median),
          column("time_p95", "s", &ResultRow::time_p95),
          column("time_max", "s", &ResultRow::time_max),
          column("tflops_per_rank", "TFLOP/s", &ResultRow::tflops_per_rank),
          column("exposed_fraction", "1", &ResultRow::exposed_fraction),
          column("bytes_inside", "B", &ResultRow::bytes_inside),
          column("bytes_across", "B", &ResultRow::bytes_across),
          column("imbalance", "1", &ResultRow::imbalance),
          column("peak_memory_min", "B", &ResultRow::peak_memory_min),
          column("peak_memory_max", "B", &ResultRow::peak_memory_max),
          column("error", "1", &ResultRow::error),
          column("tolerance", "1", &ResultRow::tolerance),
          column("verdict", "text", &ResultRow::verdict),
          column("verification", "text", &ResultRow::verification)};
}

}  // namespace hcp
