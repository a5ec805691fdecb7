/// Exact attention on the host: tiles of query rows, dealt to OpenMP threads.
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/attention_kernel.hpp"
#include "kernels/block_checks.hpp"
#include "kernels/cpu/block_dropout.hpp"
#include "kernels/cpu/cpu_isa.hpp"
#include "kernels/cpu/row_functions.hpp"
#include "kernels/cpu/row_operations.hpp"
#include "kernels/cpu/tile_functions.hpp"
#include "kernels/cpu/tile_schedule.hpp"
#include "kernels/cpu/turn_order.hpp"
#include "kernels/cpu/work_division.hpp"
#include "kernels/cpu/workspaces.hpp"

namespace hcp {
namespace {

/// Runs `work(task, thread)` for tasks 0 .. tasks - 1. They are begun in ascending order, whoever takes them:
/// so a task may wait for tasks before it.
template <typename Work>
void run_tasks(int threads, std::int64_t tasks, const Work& work) {
  std::atomic<std::int64_t> next{0};
#pragma omp parallel num_threads(threads)
  {
    const int thread = omp_get_thread_num();
    for (std::int64_t task = next.fetch_add(1, std::memory_order_relaxed); task < tasks;
         task = next.fetch_add(1, std::memory_order_relaxed)) {
      work(task, thread);
    }
  }
}

HeadRows rows_of_head(const ConstTensorView& tensor, std::int64_t first_row, std::int64_t head) {
  const std::int64_t element = (first_row * tensor.heads + head) * tensor.dim;
  return {tensor.data + element * static_cast<std::int64_t>(size_of(tensor.type)), tensor.type,
          tensor.row_elements()};
}

HeadSums sums_of_head(float* data, std::int64_t heads, std::int64_t dim, std::int64_t first_row,
                      std::int64_t head) {
  return {data + (first_row * heads + head) * dim, heads * dim};
}

KeyChunk key_chunk(const KvBlock& kv, std::int64_t kv_head, std::int32_t begin, std::int32_t end) {
  return {.begin = begin,
          .end = end,
          .k = rows_of_head(kv.k, begin, kv_head),
          .v = rows_of_head(kv.v, begin, kv_head),
          .dim_qk = static_cast<int>(kv.k.dim),
          .dim_v = static_cast<int>(kv.v.dim)};
}

/// Nothing, if nothing is dropped.
std::optional<BlockDropout> block_dropout(const BlockRule& rule, const QueryBlock& query, const KvBlock& kv) {
  if (!rule.dropout.drops()) {
    return std::nullopt;
  }
  return BlockDropout{rule.dropout, query.positions, kv.positions, rule.heads.first_query_head,
                      query.q.heads};
}

/// Of query rows from `first_row` on, of one head.
std::optional<RowsDropout> rows_dropout(const std::optional<BlockDropout>& dropout, std::int64_t first_row,
                                        std::int64_t head) {
  return dropout ? std::optional{dropout->of(first_row, head)} : std::nullopt;
}

/// What a forward call works on; a task is a run of rows and a KV head.
struct ForwardCall {
  const AttentionFunctions& functions;
  const BlockRule& rule;
  const QueryBlock& query;
  const KvBlock& kv;
  const RunningOutput& running;
  std::optional<BlockDropout> dropout;
  const std::vector<RowKeys>& row_keys;
  std::int32_t chunk_keys;
  std::vector<std::vector<RowSpan>> rows_of_chunks;  ///< as rows_by_chunk gives them
  std::vector<HeadGroup> groups;

  /// Every chunk of keys is packed once for all rows and heads of the task.
  void run(std::int64_t first_row, std::int64_t last_row, std::int64_t kv_head, std::byte* workspace) const {
    const auto keys = static_cast<std::int32_t>(kv.k.rows);
    for (std::size_t index = 0; index < rows_of_chunks.size(); ++index) {
      const std::vector<RowSpan>& spans = rows_of_chunks[index];
      auto span = std::ranges::upper_bound(spans, first_row, {},
                                           [](const RowSpan& each) { return each.first + each.count; });
      if (span == spans.end() || span->first >= last_row) {
        continue;
      }
      const std::int32_t begin = static_cast<std::int32_t>(index) * chunk_keys;
      const KeyChunk chunk = key_chunk(kv, kv_head, begin, std::min(begin + chunk_keys, keys));
      functions.begin_forward_chunk(chunk, workspace);
      for (; span != spans.end() && span->first < last_row; ++span) {
        const std::int64_t first = std::max(span->first, first_row);
        const std::int64_t last = std::min(span->first + span->count, last_row);
        visit({first, last - first}, chunk, groups[static_cast<std::size_t>(kv_head)], workspace);
      }
    }
  }

 private:
  void visit(RowSpan rows, const KeyChunk& chunk, const HeadGroup& group, std::byte* workspace) const {
    const std::int64_t heads = query.q.heads;
    for (std::int64_t head = group.begin; head < group.end; ++head) {
      const std::optional<RowsDropout> dropped = rows_dropout(dropout, rows.first, head);
      functions.forward_rows({.shape = {.rows = static_cast<int>(rows.count),
                                        .softmax_scale = rule.softmax_scale,
                                        .row_keys = row_keys.data() + rows.first,
                                        .dropout = dropped ? &*dropped : nullptr},
                              .q = rows_of_head(query.q, rows.first, head),
                              .out = sums_of_head(running.out, heads, kv.v.dim, rows.first, head),
                              .max = sums_of_head(running.max, heads, 1, rows.first, head),
                              .sum = sums_of_head(running.sum, heads, 1, rows.first, head)},
                             chunk, workspace);
    }
  }
};

/// What a backward call works on; a task is a chunk of keys and a KV head.
struct BackwardCall {
  const AttentionFunctions& functions;
  const BlockRule& rule;
  const GradientBlock& gradient;
  const KvBlock& kv;
  const KvGradient& kv_gradient;
  std::optional<BlockDropout> dropout;
  const std::vector<RowKeys>& row_keys;
  std::span<const QueryTile> tiles;
  std::vector<std::int32_t> bounds;                       ///< as chunk_bounds gives them
  std::vector<std::vector<std::size_t>> tiles_of_chunks;  ///< as tiles_by_chunk gives them
  std::vector<HeadGroup> groups;

  /// dk and dv of the chunk belong to the task alone; to dq of a tile it adds in turn.
  void run(std::size_t index, std::int64_t kv_head, TurnOrder& order, std::byte* workspace) const {
    const std::vector<std::size_t>& visitors = tiles_of_chunks[index];
    if (visitors.empty()) {
      return;
    }
    const KeyChunk chunk = key_chunk(kv, kv_head, bounds[index], bounds[index + 1]);
    functions.begin_backward_chunk(chunk, workspace);
    for (const std::size_t tile :
         std::views::reverse(visitors)) {  // so under a causal mask nobody waits long
      order.wait_for_turn(kv_head, tile, index);
      visit(tiles[tile], tiles[tile].visits_within(chunk.begin, chunk.end), chunk,
            groups[static_cast<std::size_t>(kv_head)], workspace);
      order.pass(kv_head, tile);
    }
    functions.finish_backward_chunk(
        chunk, sums_of_head(kv_gradient.dk, kv.k.heads, kv.k.dim, chunk.begin, kv_head),
        sums_of_head(kv_gradient.dv, kv.v.heads, kv.v.dim, chunk.begin, kv_head), workspace);
  }

 private:
  void visit(const QueryTile& tile, std::span<const KeyVisit> visits, const KeyChunk& chunk,
             const HeadGroup& group, std::byte* workspace) const {
    const std::int64_t heads = gradient.query.q.heads;
    const std::int64_t row = tile.first_row;
    for (std::int64_t head = group.begin; head < group.end; ++head) {
      const std::optional<RowsDropout> dropped = rows_dropout(dropout, row, head);
      functions.backward_tile({.shape = {.rows = tile.rows,
                                         .softmax_scale = rule.softmax_scale,
                                         .row_keys = row_keys.data() + row,
                                         .dropout = dropped ? &*dropped : nullptr},
                               .q = rows_of_head(gradient.query.q, row, head),
                               .dout = rows_of_head(gradient.dout, row, head),
                               .lse = gradient.lse + row * heads + head,
                               .delta = gradient.delta + row * heads + head,
                               .row_stride = heads,
                               .dq = sums_of_head(gradient.dq, heads, gradient.query.q.dim, row, head),
                               .visits = visits.data(),
                               .visit_count = static_cast<int>(visits.size())},
                              chunk, workspace);
    }
  }
};

class CpuAttentionKernel final : public AttentionKernel {
 public:
  explicit CpuAttentionKernel(int threads)
      : threads_{threads},
        functions_{selected_tile_functions()},
        row_operations_{selected_row_functions(), threads},
        workspaces_{threads} {}

  [[nodiscard]] MemorySpace memory_space() const override { return MemorySpace::host; }

  void forward_block(const BlockRule& rule, const QueryBlock& query, const KvBlock& kv,
                     const RunningOutput& running) override {
    check_block(rule, query, kv);
    const std::int64_t heads_kv = kv.k.heads;
    const AttentionFunctions& functions = functions_for(kv.k.type);
    const std::vector<RowKeys> row_keys = row_keys_of(*rule.mask, query.positions, kv.positions);
    const std::int32_t chunk_keys =
        functions.forward_chunk_keys(static_cast<int>(kv.k.dim), static_cast<int>(kv.v.dim));
    const ForwardCall call{
        .functions = functions,
        .rule = rule,
        .query = query,
        .kv = kv,
        .running = running,
        .dropout = block_dropout(rule, query, kv),
        .row_keys = row_keys,
        .chunk_keys = chunk_keys,
        .rows_of_chunks = rows_by_chunk(row_keys, static_cast<std::int32_t>(kv.k.rows), chunk_keys),
        .groups = head_groups(rule.heads, query.q.heads, heads_kv)};
    const std::vector<std::int64_t> bounds = row_bounds(row_keys, query.q.heads, heads_kv, threads_);
    run_tasks(threads_, (std::ssize(bounds) - 1) * heads_kv, [&](std::int64_t task, std::int64_t thread) {
      const auto index = static_cast<std::size_t>(task / heads_kv);
      call.run(bounds[index], bounds[index + 1], task % heads_kv, workspaces_.of(thread));
    });
  }

  void max_logits(const float* max, std::int64_t rows, std::int64_t heads, float* logits) override {
    row_operations_.max_logits(max, rows, heads, logits);
  }
  void finish_forward(const RunningOutput& running, std::int64_t rows, std::int64_t heads, std::int64_t dim_v,
                      float* lse, const float* sinks) override {
    row_operations_.finish_forward(running, rows, heads, dim_v, lse, sinks);
  }
  void sink_gradients(const float* sinks, const float* lse, const float* delta, std::int64_t rows,
                      std::int64_t heads, float* dsinks) override {
    row_operations_.sink_gradients(sinks, lse, delta, rows, heads, dsinks);
  }

  void backward_block(const BlockRule& rule, const GradientBlock& gradient, const KvBlock& kv,
                      const KvGradient& kv_gradient) override {
    check_gradient_block(rule, gradient, kv);
    const std::int64_t heads_kv = kv.k.heads;
    const std::vector<RowKeys> row_keys = row_keys_of(*rule.mask, gradient.query.positions, kv.positions);
    const std::vector<QueryTile> tiles = query_tiles(row_keys);
    const AttentionFunctions& functions = functions_for(kv.k.type);
    const std::int32_t most_keys =
        functions.backward_chunk_keys(static_cast<int>(kv.k.dim), static_cast<int>(kv.v.dim));
    const std::vector<std::int32_t> bounds =
        chunk_bounds(static_cast<std::int32_t>(kv.k.rows), most_keys, heads_kv, threads_);
    const BackwardCall call{.functions = functions,
                            .rule = rule,
                            .gradient = gradient,
                            .kv = kv,
                            .kv_gradient = kv_gradient,
                            .dropout = block_dropout(rule, gradient.query, kv),
                            .row_keys = row_keys,
                            .tiles = tiles,
                            .bounds = bounds,
                            .tiles_of_chunks = tiles_by_chunk(tiles, bounds),
                            .groups = head_groups(rule.heads, gradient.query.q.heads, heads_kv)};
    TurnOrder order{tiles.size(), call.tiles_of_chunks, heads_kv};
    run_tasks(
        threads_, std::ssize(call.tiles_of_chunks) * heads_kv, [&](std::int64_t task, std::int64_t thread) {
          call.run(static_cast<std::size_t>(task / heads_kv), task % heads_kv, order, workspaces_.of(thread));
        });
  }

  void row_dot(ConstTensorView out, ConstTensorView dout, float* delta) override {
    row_operations_.row_dot(out, dout, delta);
  }
  void copy_rows(const BasicRowTable<const std::byte>& source, const BasicRowTable<std::byte>& target,
                 std::int64_t rows, std::int64_t elements) override {
    row_operations_.copy_rows(source, target, rows, elements);
  }
  void add_rows(const BasicRowTable<const std::byte>& source, const BasicRowTable<std::byte>& target,
                std::int64_t rows, std::int64_t elements) override {
    row_operations_.add_rows(source, target, rows, elements);
  }
  void fill(float* target, std::int64_t count, float value) override { std::fill_n(target, count, value); }

 private:
  [[nodiscard]] const AttentionFunctions& functions_for(DataType type) const {
    return type == DataType::bf16 ? functions_.bf16 : functions_.fp32;
  }

  int threads_;
  const TileFunctions& functions_;
  RowOperations row_operations_;
  Workspaces workspaces_;
};

}  // namespace

std::unique_ptr<AttentionKernel> make_cpu_attention_kernel(int threads) {
  if (threads < 1) {
    throw std::invalid_argument{"threads is " + std::to_string(threads) + "; it must be at least 1"};
  }
  return std::make_unique<CpuAttentionKernel>(threads);
}

}  // namespace hcp
