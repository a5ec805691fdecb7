/// The tables that the kernels of one block read besides its tensors: made on the host, read on the device.
#pragma once

#include <vector>

#include "kernels/attention_kernel.hpp"
#include "kernels/cuda/kernel_parameters.hpp"
#include "kernels/cuda/table_upload.hpp"
#include "kernels/cuda/tile_schedule.hpp"

namespace hcp::cuda {

/// Parameters whose pointers lead to the device, for what the stream is asked while this object lives.
class BlockTables {
 public:
  /// @param row_keys   as row_keys_of
  /// @param schedules  at most two
  BlockTables(TableUpload& upload, const BlockRule& rule, const QueryBlock& query, const KvBlock& kv,
              const std::vector<RowKeys>& row_keys, const std::vector<TileScheduleData>& schedules);

  [[nodiscard]] const BlockShape& shape() const { return shape_; }
  [[nodiscard]] const DropoutTable& dropout() const { return dropout_; }
  /// By the order of `schedules`.
  [[nodiscard]] TileSchedule schedule(std::size_t index) const;

 private:
  BlockShape shape_;
  DropoutTable dropout_;
  DeviceTables tables_;
};

}  // namespace hcp::cuda
