// The kernels of the CUDA back end, on device 0: every call copies what it gets there, and the results back.

#include "kernels/cuda/back_end.hpp"
#include "tests/kernels/cuda/device_copy.hpp"
#include "tests/kernels/cuda/kernel_under_test.hpp"

namespace hcp::test {
namespace {

constexpr std::int64_t float_bytes = sizeof(float);

/// From the first element to the last one.
template <typename Byte>
std::int64_t bytes_of(const BasicRowTable<Byte>& table, std::int64_t rows, std::int64_t elements) {
  return rows == 0 || elements == 0
             ? 0
             : ((rows - 1) * table.stride + elements) * static_cast<std::int64_t>(size_of(table.type));
}

class KernelOnDevice final : public AttentionKernel {
 public:
  [[nodiscard]] MemorySpace memory_space() const override { return MemorySpace::host; }

  void forward_block(const BlockRule& rule, const QueryBlock& query, const KvBlock& kv,
                     const RunningOutput& running) override {
    const std::int64_t rows = query.q.rows * query.q.heads;
    const Input q{*this, query.q};
    const Input k{*this, kv.k};
    const Input v{*this, kv.v};
    const DeviceCopy out = copy_of(running.out, rows * kv.v.dim);
    const DeviceCopy max = copy_of(running.max, rows);
    const DeviceCopy sum = copy_of(running.sum, rows);
    kernel().forward_block(rule, {q.view(), query.positions}, {k.view(), v.view(), kv.positions},
                           {out.floats(), max.floats(), sum.floats()});
    out.read(running.out);
    max.read(running.max);
    sum.read(running.sum);
  }

  void max_logits(const float* max, std::int64_t rows, std::int64_t heads, float* logits) override {
    const DeviceCopy maxima = copy_of(max, rows * heads);
    const DeviceCopy result = space_for(heads);
    kernel().max_logits(maxima.floats(), rows, heads, result.floats());
    result.read(logits);
  }

  void finish_forward(const RunningOutput& running, std::int64_t rows, std::int64_t heads, std::int64_t dim_v,
                      float* lse, const float* sinks) override {
    const DeviceCopy out = copy_of(running.out, rows * heads * dim_v);
    const DeviceCopy max = copy_of(running.max, rows * heads);
    const DeviceCopy sum = copy_of(running.sum, rows * heads);
    const DeviceCopy own_lse = space_for(lse == running.max ? 0 : rows * heads);
    const DeviceCopy& result = lse == running.max ? max : own_lse;
    const DeviceCopy sink = copy_of(sinks, sinks == nullptr ? 0 : heads);
    kernel().finish_forward({out.floats(), max.floats(), sum.floats()}, rows, heads, dim_v, result.floats(),
                            sink.floats());
    out.read(running.out);
    result.read(lse);
  }

  void backward_block(const BlockRule& rule, const GradientBlock& gradient, const KvBlock& kv,
                      const KvGradient& kv_gradient) override {
    const QueryBlock& query = gradient.query;
    const std::int64_t rows = query.q.rows * query.q.heads;
    const Input q{*this, query.q};
    const Input k{*this, kv.k};
    const Input v{*this, kv.v};
    const Input dout{*this, gradient.dout};
    const DeviceCopy lse = copy_of(gradient.lse, rows);
    const DeviceCopy delta = copy_of(gradient.delta, rows);
    const DeviceCopy dq = copy_of(gradient.dq, rows * query.q.dim);
    const DeviceCopy dk = copy_of(kv_gradient.dk, kv.k.rows * kv.k.row_elements());
    const DeviceCopy dv = copy_of(kv_gradient.dv, kv.v.rows * kv.v.row_elements());
    kernel().backward_block(
        rule, {{q.view(), query.positions}, dout.view(), lse.floats(), delta.floats(), dq.floats()},
        {k.view(), v.view(), kv.positions}, {dk.floats(), dv.floats()});
    dq.read(gradient.dq);
    dk.read(kv_gradient.dk);
    dv.read(kv_gradient.dv);
  }

  void sink_gradients(const float* sinks, const float* lse, const float* delta, std::int64_t rows,
                      std::int64_t heads, float* dsinks) override {
    const DeviceCopy sink = copy_of(sinks, heads);
    const DeviceCopy lses = copy_of(lse, rows * heads);
    const DeviceCopy deltas = copy_of(delta, rows * heads);
    const DeviceCopy result = space_for(heads);
    kernel().sink_gradients(sink.floats(), lses.floats(), deltas.floats(), rows, heads, result.floats());
    result.read(dsinks);
  }

  void row_dot(ConstTensorView out, ConstTensorView dout, float* delta) override {
    const Input left{*this, out};
    const Input right{*this, dout};
    const DeviceCopy result = space_for(out.rows * out.heads);
    kernel().row_dot(left.view(), right.view(), result.floats());
    result.read(delta);
  }

  void copy_rows(const BasicRowTable<const std::byte>& source, const BasicRowTable<std::byte>& target,
                 std::int64_t rows, std::int64_t elements) override {
    on_tables(&AttentionKernel::copy_rows, source, target, rows, elements);
  }

  void add_rows(const BasicRowTable<const std::byte>& source, const BasicRowTable<std::byte>& target,
                std::int64_t rows, std::int64_t elements) override {
    on_tables(&AttentionKernel::add_rows, source, target, rows, elements);
  }

  void fill(float* target, std::int64_t count, float value) override {
    const DeviceCopy values = space_for(count);
    kernel().fill(values.floats(), count, value);
    values.read(target);
  }

 private:
  /// A tensor on the device.
  class Input {
   public:
    Input(KernelOnDevice& owner, const ConstTensorView& host)
        : host_{host}, copy_{*owner.back_end_.stream, host.data, host.bytes()} {}
    [[nodiscard]] ConstTensorView view() const {
      return {copy_.data(), host_.type, host_.rows, host_.heads, host_.dim};
    }

   private:
    ConstTensorView host_;
    DeviceCopy copy_;
  };

  [[nodiscard]] AttentionKernel& kernel() const { return *back_end_.kernel; }

  [[nodiscard]] DeviceCopy copy_of(const float* host, std::int64_t count) const {
    return {*back_end_.stream, host, count * float_bytes};
  }
  [[nodiscard]] DeviceCopy space_for(std::int64_t count) const {
    return {*back_end_.stream, nullptr, count * float_bytes};
  }

  /// The target's gaps go along, and come back as they are.
  template <typename Operation>
  void on_tables(Operation operation, const BasicRowTable<const std::byte>& source,
                 const BasicRowTable<std::byte>& target, std::int64_t rows, std::int64_t elements) const {
    const DeviceCopy from{*back_end_.stream, source.data, bytes_of(source, rows, elements)};
    const DeviceCopy to{*back_end_.stream, target.data, bytes_of(target, rows, elements)};
    (kernel().*operation)({from.data(), source.type, source.stride}, {to.data(), target.type, target.stride},
                          rows, elements);
    to.read(target.data);
  }

  BackEnd back_end_ = make_cuda_back_end(0);
};

}  // namespace

std::unique_ptr<AttentionKernel> make_kernel_under_test() {
  return std::make_unique<KernelOnDevice>();
}

}  // namespace hcp::test
