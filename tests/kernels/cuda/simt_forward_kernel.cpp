#include "tests/kernels/cuda/simt_forward_kernel.hpp"

#include "kernels/cuda/forward_kernels.hpp"
#include "tests/kernels/cuda/device_problem.hpp"
#include "tests/kernels/cuda/simt_launch.hpp"

namespace hcp::test {
namespace {

class SimtForwardKernel final : public AttentionKernel {
 public:
  SimtForwardKernel(simt::Order order, FullVisits full_visits) : order_{order}, full_visits_{full_visits} {}

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
    reference_->max_logits(max, rows, heads, logits);
  }

  void finish_forward(const RunningOutput& running, std::int64_t rows, std::int64_t heads, std::int64_t dim_v,
                      float* lse, const float* sinks) override {
    reference_->finish_forward(running, rows, heads, dim_v, lse, sinks);
  }

  void backward_block(const BlockRule&, const GradientBlock&, const KvBlock&, const KvGradient&) override {}

  void sink_gradients(const float* sinks, const float* lse, const float* delta, std::int64_t rows,
                      std::int64_t heads, float* dsinks) override {
    reference_->sink_gradients(sinks, lse, delta, rows, heads, dsinks);
  }

  void row_dot(ConstTensorView out, ConstTensorView dout, float* delta) override {
    reference_->row_dot(out, dout, delta);
  }

  void copy_rows(const BasicRowTable<const std::byte>& source, const BasicRowTable<std::byte>& target,
                 std::int64_t rows, std::int64_t elements) override {
    reference_->copy_rows(source, target, rows, elements);
  }

  void add_rows(const BasicRowTable<const std::byte>& source, const BasicRowTable<std::byte>& target,
                std::int64_t rows, std::int64_t elements) override {
    reference_->add_rows(source, target, rows, elements);
  }

  void fill(float* target, std::int64_t count, float value) override {
    reference_->fill(target, count, value);
  }

 private:
  simt::Order order_;
  FullVisits full_visits_;
  std::unique_ptr<AttentionKernel> reference_ = make_reference_attention_kernel();
};

}  // namespace

std::unique_ptr<AttentionKernel> make_simt_forward_kernel(simt::Order order, FullVisits full_visits) {
  return std::make_unique<SimtForwardKernel>(order, full_visits);
}

}  // namespace hcp::test
