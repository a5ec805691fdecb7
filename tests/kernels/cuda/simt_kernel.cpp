#include "tests/kernels/cuda/simt_kernel.hpp"

#include "kernels/cuda/backward_kernels.hpp"
#include "kernels/cuda/forward_kernels.hpp"
#include "kernels/cuda/row_kernel_entries.hpp"
#include "kernels/cuda/row_parameters.hpp"
#include "tests/kernels/cuda/device_problem.hpp"
#include "tests/kernels/cuda/kernel_under_test.hpp"
#include "tests/kernels/cuda/simt_launch.hpp"

namespace hcp::test {
namespace {

class SimtKernel final : public AttentionKernel {
 public:
  SimtKernel(simt::Order order, FullVisits full_visits) : order_{order}, full_visits_{full_visits} {}

  [[nodiscard]] MemorySpace memory_space() const override { return MemorySpace::host; }

  void forward_block(const BlockRule& rule, const QueryBlock& query, const KvBlock& kv,
                     const RunningOutput& running) override {
    const DeviceProblem problem{rule, query, kv};
    const cuda::BlockShape shape = problem.shape();
    const cuda::KernelEntry& kernel =
        cuda::forward_kernel_entry(kv.k.type, shape.dim_qk, shape.dim_v, rule.dropout.drops());
    const ScheduleTables tables =
        problem.query_schedule(kernel.own_rows, kernel.other_rows, full_visits_ == FullVisits::masked);
    simt_launch(kernel, {tables.work.size(), static_cast<std::size_t>(shape.heads_q)}, order_,
                cuda::ForwardParameters{.shape = shape,
                                        .schedule = tables.view(),
                                        .dropout = problem.dropout(),
                                        .q = query.q.data,
                                        .k = kv.k.data,
                                        .v = kv.v.data,
                                        .out = running.out,
                                        .max = running.max,
                                        .sum = running.sum});
  }

  void max_logits(const float* max, std::int64_t rows, std::int64_t heads, float* logits) override {
    run_rows(cuda::max_logits_kernel_entry(),
             cuda::MaxLogitsParameters{max, rows, static_cast<std::int32_t>(heads), logits});
  }

  void finish_forward(const RunningOutput& running, std::int64_t rows, std::int64_t heads, std::int64_t dim_v,
                      float* lse, const float* sinks) override {
    run_rows(
        cuda::finish_forward_kernel_entry(),
        cuda::FinishForwardParameters{running.out, running.max, running.sum, sinks, lse, rows * heads,
                                      static_cast<std::int32_t>(heads), static_cast<std::int32_t>(dim_v)});
  }

  void backward_block(const BlockRule& rule, const GradientBlock& gradient, const KvBlock& kv,
                      const KvGradient& kv_gradient) override {
    const DeviceProblem problem{rule, gradient.query, kv};
    cuda::BackwardParameters parameters{.shape = problem.shape(),
                                        .schedule = {},
                                        .dropout = problem.dropout(),
                                        .q = gradient.query.q.data,
                                        .k = kv.k.data,
                                        .v = kv.v.data,
                                        .dout = gradient.dout.data,
                                        .lse = gradient.lse,
                                        .delta = gradient.delta,
                                        .dq = gradient.dq,
                                        .dk = kv_gradient.dk,
                                        .dv = kv_gradient.dv};
    const cuda::BlockShape& shape = parameters.shape;
    const DataType type = kv.k.type;
    const bool dropping = rule.dropout.drops();
    for (const cuda::KernelEntry& kernel :
         cuda::backward_keys_kernel_entries(type, shape.dim_qk, shape.dim_v, dropping)) {
      const ScheduleTables tables = problem.key_schedule(kernel.own_rows, kernel.other_rows);
      parameters.schedule = tables.view();
      simt_launch(kernel, {tables.work.size(), static_cast<std::size_t>(shape.heads_kv)}, order_, parameters);
    }
    const cuda::KernelEntry& kernel =
        cuda::backward_queries_kernel_entry(type, shape.dim_qk, shape.dim_v, dropping);
    const ScheduleTables tables = problem.query_schedule(kernel.own_rows, kernel.other_rows);
    parameters.schedule = tables.view();
    simt_launch(kernel, {tables.work.size(), static_cast<std::size_t>(shape.heads_q)}, order_, parameters);
  }

  void sink_gradients(const float* sinks, const float* lse, const float* delta, std::int64_t rows,
                      std::int64_t heads, float* dsinks) override {
    run_rows(
        cuda::sink_gradients_kernel_entry(),
        cuda::SinkGradientsParameters{sinks, lse, delta, rows, static_cast<std::int32_t>(heads), dsinks});
  }

  void row_dot(ConstTensorView out, ConstTensorView dout, float* delta) override {
    run_rows(cuda::row_dot_kernel_entry(out.type, dout.type),
             cuda::RowDotParameters{out.data, dout.data, delta, out.rows * out.heads,
                                    static_cast<std::int32_t>(out.dim)});
  }

  void copy_rows(const BasicRowTable<const std::byte>& source, const BasicRowTable<std::byte>& target,
                 std::int64_t rows, std::int64_t elements) override {
    run_rows(
        cuda::copy_rows_kernel_entry(source.type, target.type),
        cuda::RowTablesParameters{source.data, target.data, source.stride, target.stride, rows, elements});
  }

  void add_rows(const BasicRowTable<const std::byte>& source, const BasicRowTable<std::byte>& target,
                std::int64_t rows, std::int64_t elements) override {
    run_rows(
        cuda::add_rows_kernel_entry(source.type),
        cuda::RowTablesParameters{source.data, target.data, source.stride, target.stride, rows, elements});
  }

  void fill(float* target, std::int64_t count, float value) override {
    run_rows(cuda::fill_kernel_entry(), cuda::FillParameters{target, count, value});
  }

 private:
  /// Few blocks, so that each goes round several times.
  template <typename Parameters>
  void run_rows(const cuda::KernelEntry& kernel, const Parameters& parameters) const {
    simt_launch(kernel, {2, 1}, order_, parameters);
  }

  simt::Order order_;
  FullVisits full_visits_;
};

}  // namespace

std::unique_ptr<AttentionKernel> make_simt_kernel(simt::Order order, FullVisits full_visits) {
  return std::make_unique<SimtKernel>(order, full_visits);
}

std::unique_ptr<AttentionKernel> make_kernel_under_test() {
  return make_simt_kernel();
}

}  // namespace hcp::test
