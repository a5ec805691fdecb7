#include "tests/gpu_check/device_block.hpp"

#include <cmath>
#include <limits>

#include "tests/gpu_check/random_tensor.hpp"

namespace hcp::gpu_check {
namespace {

AttentionMask mask_of(bool causal, const DocumentBounds& documents) {
  return causal ? AttentionMask::causal(documents) : AttentionMask::no_mask(documents);
}

float* floats(const Buffer& buffer) {
  return reinterpret_cast<float*>(buffer.data());
}

}  // namespace

DeviceBlock::DeviceBlock(BackEnd& back_end, const BlockSize& size, bool causal)
    : back_end_{back_end},
      size_{size},
      offsets_{0, size.tokens},
      mask_{mask_of(causal, DocumentBounds{offsets_})},
      positions_{{0, size.tokens}},
      rule_{.mask = &mask_,
            .heads = {},
            .softmax_scale = 1.0F / std::sqrt(static_cast<float>(size.head_dim)),
            .dropout = {}},
      q_{random_tensor(back_end, ledger_, elements(), 1)},
      k_{random_tensor(back_end, ledger_, elements(), 2)},
      v_{random_tensor(back_end, ledger_, elements(), 3)},
      dout_{random_tensor(back_end, ledger_, elements(), 4)},
      running_out_{buffer(elements(), DataType::fp32)},
      lse_{buffer(rows(), DataType::fp32)},
      sum_{buffer(rows(), DataType::fp32)},
      delta_{buffer(rows(), DataType::fp32)},
      dq_{buffer(elements(), DataType::fp32)},
      dk_{buffer(elements(), DataType::fp32)},
      dv_{buffer(elements(), DataType::fp32)},
      out_{buffer(elements(), DataType::bf16)},
      rounded_gradient_{buffer(elements(), DataType::bf16)} {}

Buffer DeviceBlock::buffer(std::int64_t count, DataType type) {
  return Buffer{ledger_, MemoryCategory::accumulator, count * static_cast<std::int64_t>(size_of(type)),
                *back_end_.memory};
}

ConstTensorView DeviceBlock::view(const Buffer& buffer) const {
  return {buffer.data(), DataType::bf16, size_.tokens, size_.heads, size_.head_dim};
}

RunningOutput DeviceBlock::running() const {
  return {.out = floats(running_out_), .max = floats(lse_), .sum = floats(sum_)};  // max makes way for lse
}

void DeviceBlock::round(const Buffer& fp32, const Buffer& bf16) {
  const std::int64_t row = size_.heads * size_.head_dim;
  back_end_.kernel->copy_rows({fp32.data(), DataType::fp32, row}, {bf16.data(), DataType::bf16, row},
                              size_.tokens, row);
}

void DeviceBlock::forward_block() {
  back_end_.kernel->forward_block(rule_, query(), kv(), running());
}

void DeviceBlock::forward_pass() {
  AttentionKernel& kernel = *back_end_.kernel;
  kernel.fill(floats(running_out_), elements(), 0.0F);
  kernel.fill(floats(lse_), rows(), -std::numeric_limits<float>::infinity());
  kernel.fill(floats(sum_), rows(), 0.0F);
  forward_block();
  kernel.finish_forward(running(), size_.tokens, size_.heads, size_.head_dim, floats(lse_));
  round(running_out_, out_);
}

void DeviceBlock::backward_block() {
  back_end_.kernel->backward_block(rule_, {query(), view(dout_), floats(lse_), floats(delta_), floats(dq_)},
                                   kv(), {floats(dk_), floats(dv_)});
}

void DeviceBlock::backward_pass() {
  back_end_.kernel->row_dot(view(out_), view(dout_), floats(delta_));
  for (const Buffer* const gradient : {&dq_, &dk_, &dv_}) {
    back_end_.kernel->fill(floats(*gradient), elements(), 0.0F);
  }
  backward_block();
  for (const Buffer* const gradient : {&dq_, &dk_, &dv_}) {
    round(*gradient, rounded_gradient_);
  }
}

double DeviceBlock::forward_flops() const {
  return 4.0 * static_cast<double>(mask_.area(positions_, positions_) * size_.heads * size_.head_dim);
}

}  // namespace hcp::gpu_check
