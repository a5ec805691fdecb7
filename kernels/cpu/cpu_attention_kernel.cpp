/// Exact attention on the host: tiles of query rows, dealt to OpenMP threads.
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/attention_kernel.hpp"
#include "kernels/cpu/block_checks.hpp"
#include "kernels/cpu/cpu_isa.hpp"
#include "kernels/cpu/tile_functions.hpp"
#include "kernels/cpu/tile_schedule.hpp"
#include "kernels/cpu/visit_order.hpp"
#include "kernels/row_operations.hpp"

namespace hcp {
namespace {

constexpr std::align_val_t cache_line{64};

struct FreeAligned {
  void operator()(std::byte* memory) const { ::operator delete(memory, cache_line); }
};

/// Scratch memory per thread, kept from call to call. Untouched until its thread writes it, so it lies near
/// that thread.
class Workspaces {
 public:
  Workspaces(int threads, std::size_t bytes) {
    for (int i = 0; i < threads; ++i) {
      memory_.emplace_back(static_cast<std::byte*>(::operator new(bytes, cache_line)));
    }
  }

  [[nodiscard]] std::byte* of(std::int64_t thread) const {
    return memory_[static_cast<std::size_t>(thread)].get();
  }

 private:
  std::vector<std::unique_ptr<std::byte, FreeAligned>> memory_;
};

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

KeyRun key_run(const KvBlock& kv, const KeyVisit& visit, std::int64_t kv_head) {
  return {visit.begin, visit.end, rows_of_head(kv.k, visit.begin, kv_head),
          rows_of_head(kv.v, visit.begin, kv_head)};
}

/// One query tile of one head. Tiles run fastest: threads that work at the same time then share the keys of
/// one head in their caches.
struct Task {
  const QueryTile& tile;
  std::int64_t head;

  Task(const TileSchedule& schedule, std::int64_t task)
      : tile{schedule.tiles[static_cast<std::size_t>(task) % schedule.tiles.size()]},
        head{task / static_cast<std::int64_t>(schedule.tiles.size())} {}
};

TileShape shape_of(const BlockRule& rule, const QueryBlock& query, const KvBlock& kv,
                   const TileSchedule& schedule, const QueryTile& tile) {
  return {.rows = tile.rows,
          .dim_qk = static_cast<int>(query.q.dim),
          .dim_v = static_cast<int>(kv.v.dim),
          .softmax_scale = rule.softmax_scale,
          .row_keys = schedule.row_keys.data() + tile.first_row};
}

class CpuAttentionKernel final : public AttentionKernel {
 public:
  explicit CpuAttentionKernel(int threads)
      : threads_{threads},
        functions_{selected_tile_functions()},
        workspaces_{threads,
                    std::max(functions_.forward_workspace_bytes, functions_.backward_workspace_bytes)} {}

  [[nodiscard]] MemorySpace memory_space() const override { return MemorySpace::host; }

  void forward_block(const BlockRule& rule, const QueryBlock& query, const KvBlock& kv,
                     const RunningOutput& running) override {
    check_block(rule, query, kv);
    const TileSchedule schedule = make_tile_schedule(*rule.mask, query.positions, kv.positions);
    const std::int64_t heads = query.q.heads;
    const auto tasks = static_cast<std::int64_t>(schedule.tiles.size()) * heads;
    run_tasks(threads_, tasks, [&](std::int64_t index, std::int64_t thread) {
      const Task task{schedule, index};
      const std::int64_t row = task.tile.first_row;
      const ForwardTile tile{.shape = shape_of(rule, query, kv, schedule, task.tile),
                             .q = rows_of_head(query.q, row, task.head),
                             .out = sums_of_head(running.out, heads, kv.v.dim, row, task.head),
                             .max = sums_of_head(running.max, heads, 1, row, task.head),
                             .sum = sums_of_head(running.sum, heads, 1, row, task.head)};
      forward_tile(tile, task.tile.visits, kv, rule.heads.kv_head_of(task.head), workspaces_.of(thread));
    });
  }

  void finish_forward(const RunningOutput& running, std::int64_t rows, std::int64_t heads, std::int64_t dim_v,
                      float* lse) override {
    finish_forward_host(running, rows, heads, dim_v, lse);
  }

  void backward_block(const BlockRule& rule, const GradientBlock& gradient, const KvBlock& kv,
                      const KvGradient& kv_gradient) override {
    check_gradient_block(rule, gradient, kv);
    const QueryBlock& query = gradient.query;
    const TileSchedule schedule = make_tile_schedule(*rule.mask, query.positions, kv.positions);
    const std::int64_t heads = query.q.heads;
    VisitOrder order{schedule, rule.heads, heads, kv.k.heads};
    const auto tasks = static_cast<std::int64_t>(schedule.tiles.size()) * heads;
    run_tasks(threads_, tasks, [&](std::int64_t index, std::int64_t thread) {
      const Task task{schedule, index};
      const std::int64_t row = task.tile.first_row;
      const BackwardTile tile{.shape = shape_of(rule, query, kv, schedule, task.tile),
                              .q = rows_of_head(query.q, row, task.head),
                              .dout = rows_of_head(gradient.dout, row, task.head),
                              .lse = gradient.lse + row * heads + task.head,
                              .delta = gradient.delta + row * heads + task.head,
                              .row_stride = heads,
                              .dq = sums_of_head(gradient.dq, heads, query.q.dim, row, task.head)};
      backward_tile(tile, task, rule.heads.kv_head_of(task.head), kv, kv_gradient, order,
                    workspaces_.of(thread));
    });
  }

  void row_dot(ConstTensorView out, ConstTensorView dout, float* delta) override {
    row_dot_host(out, dout, delta);
  }
  void copy_rows(const BasicRowTable<const std::byte>& source, const BasicRowTable<std::byte>& target,
                 std::int64_t rows, std::int64_t elements) override {
    copy_rows_host(source, target, rows, elements);
  }
  void add_rows(const BasicRowTable<const std::byte>& source, const BasicRowTable<std::byte>& target,
                std::int64_t rows, std::int64_t elements) override {
    add_rows_host(source, target, rows, elements);
  }
  void fill(float* target, std::int64_t count, float value) override { std::fill_n(target, count, value); }

 private:
  void forward_tile(const ForwardTile& tile, const std::vector<KeyVisit>& visits, const KvBlock& kv,
                    std::int64_t kv_head, std::byte* workspace) const {
    if (visits.empty()) {
      return;
    }
    functions_.begin_forward(tile, workspace);
    for (const KeyVisit& visit : visits) {
      functions_.visit_forward(tile, key_run(kv, visit, kv_head), workspace);
    }
    functions_.finish_forward(tile, workspace);
  }

  /// dq belongs to the task alone; dk and dv of a key tile are added in turn.
  void backward_tile(const BackwardTile& tile, const Task& task, std::int64_t kv_head, const KvBlock& kv,
                     const KvGradient& kv_gradient, VisitOrder& order, std::byte* workspace) const {
    if (task.tile.visits.empty()) {
      return;
    }
    functions_.begin_backward(tile, workspace);
    for (const KeyVisit& visit : task.tile.visits) {
      const KeyRun keys = key_run(kv, visit, kv_head);
      functions_.visit_backward(tile, keys, workspace);
      order.wait_for_turn(task.head, visit);
      functions_.add_key_gradients(tile, keys, workspace,
                                   sums_of_head(kv_gradient.dk, kv.k.heads, kv.k.dim, visit.begin, kv_head),
                                   sums_of_head(kv_gradient.dv, kv.v.heads, kv.v.dim, visit.begin, kv_head));
      order.pass(task.head, visit);
    }
    functions_.finish_backward(tile, workspace);
  }

  int threads_;
  const TileFunctions& functions_;
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
