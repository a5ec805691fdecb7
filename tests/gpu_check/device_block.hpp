/// One block of attention on a device with everything that both passes read and write.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/attention_kernel.hpp"
#include "kernels/back_end.hpp"
#include "kernels/buffer.hpp"

namespace hcp::gpu_check {

struct BlockSize {
  std::int64_t tokens = 0;
  std::int64_t heads = 0;  ///< of queries and of keys
  std::int64_t head_dim = 0;
};

/// Queries and keys of the same positions in bf16, uniform in (-1, 1). Every call is only asked for when it
/// returns.
class DeviceBlock {
 public:
  DeviceBlock(BackEnd& back_end, const BlockSize& size, bool causal);
  DeviceBlock(const DeviceBlock&) = delete;  // the mask knows its document
  DeviceBlock& operator=(const DeviceBlock&) = delete;
  ~DeviceBlock() = default;

  /// The kernel that folds a block into the running output, alone.
  void forward_block();
  /// From nothing to out in bf16 and lse: what the forward pass of a layer does on one rank.
  void forward_pass();
  /// The kernels that add the block's gradients, alone. Needs the results of forward_pass().
  void backward_block();
  /// From dout to dq, dk and dv in bf16, delta and fp32 sums on the way.
  void backward_pass();

  /// 4 head_dim per visible pair and head forward, 2.5 times as many backward, as published rates of
  /// attention count them. @source Dao 2023, arXiv:2307.08691, section 4.1
  [[nodiscard]] double forward_flops() const;
  [[nodiscard]] double backward_flops() const { return 2.5 * forward_flops(); }

 private:
  [[nodiscard]] std::int64_t rows() const { return size_.tokens * size_.heads; }
  [[nodiscard]] std::int64_t elements() const { return rows() * size_.head_dim; }
  [[nodiscard]] Buffer buffer(std::int64_t count, DataType type);
  [[nodiscard]] ConstTensorView view(const Buffer& buffer) const;
  [[nodiscard]] QueryBlock query() const { return {view(q_), positions_}; }
  [[nodiscard]] KvBlock kv() const { return {view(k_), view(v_), positions_}; }
  [[nodiscard]] RunningOutput running() const;
  void round(const Buffer& fp32, const Buffer& bf16);

  BackEnd& back_end_;
  BlockSize size_;
  std::array<std::int64_t, 2> offsets_;  ///< of the one document
  AttentionMask mask_;
  PositionSet positions_;
  BlockRule rule_;
  MemoryLedger ledger_;
  Buffer q_, k_, v_, dout_;
  Buffer running_out_, lse_, sum_, delta_, dq_, dk_, dv_;  ///< fp32
  Buffer out_, rounded_gradient_;                          ///< bf16; the three gradients follow each other
};

}  // namespace hcp::gpu_check
