/// A block of attention as the kernels on devices take it, made the plain way for tests: schedules from every
/// pair of a query and a key.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/attention_kernel.hpp"
#include "kernels/cuda/kernel_parameters.hpp"

namespace hcp::test {

/// What a TileSchedule points to.
struct ScheduleTables {
  std::vector<cuda::TileWork> work;
  std::vector<cuda::TileVisit> visits;

  [[nodiscard]] cuda::TileSchedule view() const { return {work.data(), visits.data()}; }
};

/// Tables of one block of queries and one block of keys.
class DeviceProblem {
 public:
  DeviceProblem(const BlockRule& rule, const QueryBlock& query, const KvBlock& kv);

  [[nodiscard]] cuda::BlockShape shape() const;
  [[nodiscard]] cuda::DropoutTable dropout() const;
  /// Of query tiles over key tiles. With `hidden`, no visit is marked as full.
  [[nodiscard]] ScheduleTables query_schedule(int tile_queries, int tile_keys, bool hidden = false) const;
  /// Of key tiles over query tiles.
  [[nodiscard]] ScheduleTables key_schedule(int tile_keys, int tile_queries, bool hidden = false) const;

 private:
  [[nodiscard]] bool sees(std::int64_t row, std::int64_t key) const;

  cuda::BlockShape shape_;
  cuda::DropoutTable dropout_;
  std::vector<RowKeys> row_keys_;
  std::vector<DropoutQuery> dropout_rows_;
  std::vector<DropoutStream> streams_;
  std::vector<std::uint32_t> key_positions_;
};

}  // namespace hcp::test
