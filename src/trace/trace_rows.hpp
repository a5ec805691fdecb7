/// What the trace file holds: one struct per table, one member per column, and the unit of each.
///
/// Members and columns have the same names. Times are seconds since the common start of the job, counted by
/// rank 0's clock. Ranks are the renumbered world ranks (node by node). A level, peer or step that does not
/// apply is -1; a number that was not measured is NaN. Rows are trivially copyable: ranks send them to rank 0
/// as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>
#include <vector>

#include "src/trace/fixed_string.hpp"

namespace hcp {

/// The version of everything in this file; raised when a column changes its name, type, unit or meaning.
inline constexpr int trace_schema_version = 1;

inline constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();

enum class ColumnType : std::uint8_t { int32, int64, float64, text };

/// One column of a table.
struct Column {
  const char* name;
  const char* unit;  ///< "1" for pure numbers, "text" for text
  ColumnType type;
  std::size_t offset;  ///< in the row struct [B]
  std::size_t size;    ///< [B]
};

/// One configuration.
struct CellRow {
  std::int32_t cell = 0;
  std::int64_t tokens = 0;    ///< queries of the whole batch: micro-batch rows times sequence length
  FixedString<256> scheme{};  ///< canonical, after levels of size 1 vanished; per layer joined by ";"
  FixedString<256> sizes{};   ///< ranks per level, inner first, "2,2"
  FixedString<32> mask{};
  FixedString<8> dtype{};
  FixedString<16> pass{};       ///< fwd, bwd or fwdbwd; ":comm" or ":compute" where only that part was run
  FixedString<24> nodes{};      ///< number of nodes, "2" or "2 (simulated)"
  double flops = not_measured;  ///< of all ranks in one iteration, visible pairs only
  double peak_flops =
      not_measured;  ///< of one rank: measured for its threads, as if each had a core, or a device's own
  FixedString<16384> options{};  ///< every option as one JSON object; lists of over 64 values shortened

  static constexpr const char* table = "cells";
  [[nodiscard]] static std::vector<Column> columns();
};

/// One rank.
struct RankRow {
  std::int32_t rank = 0;
  std::int32_t node = 0;
  std::int32_t local_rank = 0;
  std::int32_t world_rank = 0;  ///< as MPI numbered it
  FixedString<64> host{};
  FixedString<64> device{};  ///< name and PCI bus id, "NVIDIA H200 0000:1b:00.0", or "cpu"
  FixedString<32> nic{};
  FixedString<128> binding{};                ///< cores this rank may run on, "0-3,8"
  double clock_offset_start = not_measured;  ///< this rank's clock minus rank 0's
  double clock_offset_end = not_measured;    ///< the same at the end of the job
  double clock_uncertainty = not_measured;   ///< half of the shortest round trip used to measure them

  static constexpr const char* table = "ranks";
  [[nodiscard]] static std::vector<Column> columns();
};

/// One rank in one cell.
struct PlacementRow {
  std::int32_t cell = 0;
  std::int32_t rank = 0;
  std::int32_t tp = 0;  ///< coordinates in the grid
  std::int32_t cp = 0;
  std::int32_t dp = 0;
  std::int32_t pp = 0;
  /// In the CP group, inner first, "1,0", without levels of size 1; of different schemes joined by ";".
  FixedString<64> level_coordinates{};
  std::int64_t tokens = 0;  ///< queries held by this rank

  static constexpr const char* table = "placement";
  [[nodiscard]] static std::vector<Column> columns();
};

/// Names of passes in events and in the ledger of bytes.
struct PassName {
  static constexpr FixedString<4> forward{"fwd"};
  static constexpr FixedString<4> backward{"bwd"};
};

/// What a rank does during an event.
struct EventKind {
  static constexpr FixedString<8> compute{"compute"};  ///< attention blocks
  static constexpr FixedString<8> post{"post"};        ///< starts transfers
  static constexpr FixedString<8> wait{"wait"};        ///< exposed communication
  static constexpr FixedString<8> pack{
      "pack"};  ///< moves or converts rows, into and out of messages above all
  static constexpr FixedString<8> copy{"copy"};  ///< sums of gradients and fills
};

/// One phase of one step of one rank. The n-th wait of a layer, pass, level and step ends
/// the n-th post of these.
struct EventRow {
  double t_begin = 0;
  double t_end = 0;
  std::int64_t bytes = 0;  ///< sent (post), received (wait) or moved (pack, copy)
  std::int32_t cell = 0;
  std::int32_t iteration = 0;
  std::int32_t rank = 0;
  std::int32_t layer = 0;
  std::int32_t level = -1;
  std::int32_t step = -1;
  std::int32_t peer = -1;
  FixedString<4> pass{};
  FixedString<8> kind{};

  static constexpr const char* table = "events";
  [[nodiscard]] static std::vector<Column> columns();
};
static_assert(sizeof(EventRow) == 64, "events are kept in memory while ranks are timed");

/// One change of live bytes.
struct MemoryRow {
  double t = 0;
  std::int64_t live_bytes = 0;  ///< of this category, after the change
  std::int32_t cell = 0;
  std::int32_t rank = 0;
  FixedString<16> category{};  ///< a memory category, "rss" (resident set of the process) or "device"

  static constexpr const char* table = "memory";
  [[nodiscard]] static std::vector<Column> columns();
};

/// The ledger of bytes: what a rank sent to a peer in one iteration.
struct BytesRow {
  std::int32_t cell = 0;
  std::int32_t rank = 0;
  std::int32_t peer = 0;
  std::int32_t across_nodes = 0;  ///< 1 if the two ranks live on different nodes, else 0
  std::int32_t level = -1;
  FixedString<4> pass{};
  FixedString<8> tensor{};
  std::int64_t bytes_counted = 0;  ///< posted by the transports
  std::int64_t messages_counted = 0;
  std::int64_t bytes_planned = 0;
  std::int64_t messages_planned = 0;

  static constexpr const char* table = "bytes";
  [[nodiscard]] static std::vector<Column> columns();
};

/// How a cell ended.
struct CellState {
  static constexpr FixedString<8> done{"done"};
  static constexpr FixedString<8> failed{"failed"};
  static constexpr FixedString<8> skipped{"skipped"};
};

/// One finished cell. The times are those of the slowest rank of each iteration.
struct ResultRow {
  std::int32_t cell = 0;
  FixedString<8> state{};
  FixedString<256> reason{};  ///< why the cell failed or was skipped
  double time_min = not_measured;
  double time_median = not_measured;
  double time_p95 = not_measured;
  double time_max = not_measured;
  double tflops_per_rank = not_measured;
  double exposed_fraction = not_measured;  ///< time in waits over time, mean over ranks
  std::int64_t bytes_inside = 0;           ///< sent by all ranks in one iteration to ranks of their own node
  std::int64_t bytes_across = 0;           ///< and to ranks of other nodes
  double imbalance = not_measured;         ///< visible area of the busiest rank over the mean
  std::int64_t peak_memory_min = 0;        ///< over ranks, of the sum over categories
  std::int64_t peak_memory_max = 0;
  double error = not_measured;  ///< the largest against the reference
  double tolerance = not_measured;
  FixedString<16> verdict{};      ///< PASS, FAIL or UNVERIFIED
  FixedString<8> verification{};  ///< full, sample or off

  static constexpr const char* table = "results";
  [[nodiscard]] static std::vector<Column> columns();
};

static_assert(std::is_trivially_copyable_v<CellRow> && std::is_trivially_copyable_v<RankRow> &&
              std::is_trivially_copyable_v<PlacementRow> && std::is_trivially_copyable_v<EventRow> &&
              std::is_trivially_copyable_v<MemoryRow> && std::is_trivially_copyable_v<BytesRow> &&
              std::is_trivially_copyable_v<ResultRow>);

}  // namespace hcp
