#include "kernels/cuda/cuda_attention_kernel.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/block_checks.hpp"
#include "kernels/cuda/backward_kernels.hpp"
#include "kernels/cuda/block_tables.hpp"
#include "kernels/cuda/forward_kernels.hpp"
#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/row_kernel_entries.hpp"
#include "kernels/cuda/row_parameters.hpp"
#include "kernels/cuda/table_upload.hpp"
#include "kernels/row_keys.hpp"

namespace hcp::cuda {
namespace {

/// Enough to fill any device several times over; the kernels on rows do the rest in loops.
constexpr std::int64_t most_row_blocks = 4096;

/// Work of a schedule as the x dimension of a launch.
std::int64_t blocks_of(const TileScheduleData& schedule) {
  return std::ssize(schedule.work);
}

class CudaAttentionKernel final : public AttentionKernel {
 public:
  CudaAttentionKernel(const std::shared_ptr<Stream>& stream, std::shared_ptr<DeviceMemory> memory)
      : launcher_{stream}, upload_{stream, std::move(memory)} {}

  [[nodiscard]] MemorySpace memory_space() const override { return MemorySpace::device; }

  void forward_block(const BlockRule& rule, const QueryBlock& query, const KvBlock& kv,
                     const RunningOutput& running) override {
    check_block(rule, query, kv);
    const KernelEntry& kernel = forward_kernel_entry(query.q.type, static_cast<int>(query.q.dim),
                                                     static_cast<int>(kv.v.dim), rule.dropout.drops());
    const std::vector<RowKeys> row_keys = row_keys_of(*rule.mask, query.positions, kv.positions);
    const std::vector<TileScheduleData> schedules{
        query_tile_schedule(row_keys, {.queries = kernel.own_rows, .keys = kernel.other_rows})};
    if (schedules[0].work.empty()) {
      return;
    }
    const BlockTables tables{upload_, rule, query, kv, row_keys, schedules};
    launcher_.launch(kernel, {blocks_of(schedules[0]), query.q.heads},
                     ForwardParameters{.shape = tables.shape(),
                                       .schedule = tables.schedule(0),
                                       .dropout = tables.dropout(),
                                       .q = query.q.data,
                                       .k = kv.k.data,
                                       .v = kv.v.data,
                                       .out = running.out,
                                       .max = running.max,
                                       .sum = running.sum});
  }

  void backward_block(const BlockRule& rule, const GradientBlock& gradient, const KvBlock& kv,
                      const KvGradient& kv_gradient) override {
    check_gradient_block(rule, gradient, kv);
    const QueryBlock& query = gradient.query;
    const auto dim_qk = static_cast<int>(query.q.dim);
    const auto dim_v = static_cast<int>(kv.v.dim);
    const bool drops = rule.dropout.drops();
    const KernelEntry& dq_kernel = backward_queries_kernel_entry(query.q.type, dim_qk, dim_v, drops);
    const auto kv_kernels = backward_keys_kernel_entries(query.q.type, dim_qk, dim_v, drops);
    const std::vector<RowKeys> row_keys = row_keys_of(*rule.mask, query.positions, kv.positions);
    const std::vector<TileScheduleData> schedules{
        query_tile_schedule(row_keys, {.queries = dq_kernel.own_rows, .keys = dq_kernel.other_rows}),
        key_tile_schedule(row_keys, static_cast<std::int32_t>(kv.k.rows),
                          {.queries = kv_kernels[0].other_rows, .keys = kv_kernels[0].own_rows})};
    if (schedules[0].work.empty()) {
      return;
    }
    const BlockTables tables{upload_, rule, query, kv, row_keys, schedules};
    BackwardParameters parameters{.shape = tables.shape(),
                                  .schedule = tables.schedule(0),
                                  .dropout = tables.dropout(),
                                  .q = query.q.data,
                                  .k = kv.k.data,
                                  .v = kv.v.data,
                                  .dout = gradient.dout.data,
                                  .lse = gradient.lse,
                                  .delta = gradient.delta,
                                  .dq = gradient.dq,
                                  .dk = kv_gradient.dk,
                                  .dv = kv_gradient.dv};
    launcher_.launch(dq_kernel, {blocks_of(schedules[0]), query.q.heads}, parameters);
    parameters.schedule = tables.schedule(1);
    for (const KernelEntry& kernel : kv_kernels) {
      launcher_.launch(kernel, {blocks_of(schedules[1]), kv.k.heads}, parameters);
    }
  }

  void max_logits(const float* max, std::int64_t rows, std::int64_t heads, float* logits) override {
    launch_rows(max_logits_kernel_entry(), heads,
                MaxLogitsParameters{
                    .max = max, .rows = rows, .heads = static_cast<std::int32_t>(heads), .logits = logits});
  }

  void finish_forward(const RunningOutput& running, std::int64_t rows, std::int64_t heads, std::int64_t dim_v,
                      float* lse, const float* sinks) override {
    launch_rows(finish_forward_kernel_entry(), rows * heads,
                FinishForwardParameters{.out = running.out,
                                        .max = running.max,
                                        .sum = running.sum,
                                        .sinks = sinks,
                                        .lse = lse,
                                        .rows = rows * heads,
                                        .heads = static_cast<std::int32_t>(heads),
                                        .dim_v = static_cast<std::int32_t>(dim_v)});
  }

  void sink_gradients(const float* sinks, const float* lse, const float* delta, std::int64_t rows,
                      std::int64_t heads, float* dsinks) override {
    launch_rows(sink_gradients_kernel_entry(), heads,
                SinkGradientsParameters{.sinks = sinks,
                                        .lse = lse,
                                        .delta = delta,
                                        .rows = rows,
                                        .heads = static_cast<std::int32_t>(heads),
                                        .dsinks = dsinks});
  }

  void row_dot(ConstTensorView out, ConstTensorView dout, float* delta) override {
    check_row_dot(out, dout);
    const std::int64_t rows = out.rows * out.heads;
    launch_rows(row_dot_kernel_entry(out.type, dout.type), rows,
                RowDotParameters{.out = out.data,
                                 .dout = dout.data,
                                 .delta = delta,
                                 .rows = rows,
                                 .dim = static_cast<std::int32_t>(out.dim)});
  }

  void copy_rows(const BasicRowTable<const std::byte>& source, const BasicRowTable<std::byte>& target,
                 std::int64_t rows, std::int64_t elements) override {
    launch_rows(copy_rows_kernel_entry(source.type, target.type), rows,
                tables_of(source, target, rows, elements));
  }

  void add_rows(const BasicRowTable<const std::byte>& source, const BasicRowTable<std::byte>& target,
                std::int64_t rows, std::int64_t elements) override {
    check_add_rows(target);
    launch_rows(add_rows_kernel_entry(source.type), rows, tables_of(source, target, rows, elements));
  }

  void fill(float* target, std::int64_t count, float value) override {
    launch_rows(fill_kernel_entry(), count, FillParameters{.target = target, .count = count, .value = value});
  }

 private:
  static RowTablesParameters tables_of(const BasicRowTable<const std::byte>& source,
                                       const BasicRowTable<std::byte>& target, std::int64_t rows,
                                       std::int64_t elements) {
    return {.source = source.data,
            .target = target.data,
            .source_stride = source.stride,
            .target_stride = target.stride,
            .rows = rows,
            .elements = elements};
  }

  template <typename Parameters>
  void launch_rows(const KernelEntry& kernel, std::int64_t units, const Parameters& parameters) {
    const std::int64_t blocks = (units + kernel.own_rows - 1) / kernel.own_rows;
    launcher_.launch(kernel, {std::min(blocks, most_row_blocks), 1}, parameters);
  }

  Launcher launcher_;
  TableUpload upload_;
};

}  // namespace

std::unique_ptr<AttentionKernel> make_cuda_attention_kernel(std::shared_ptr<Stream> stream,
                                                            std::shared_ptr<DeviceMemory> memory) {
  return std::make_unique<CudaAttentionKernel>(stream, std::move(memory));
}

}  // namespace hcp::cuda
