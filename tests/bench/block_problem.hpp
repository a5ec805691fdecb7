/// One block of attention with everything that both passes read and write.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "kernels/attention_kernel.hpp"
#include "kernels/buffer.hpp"

namespace hcp::bench {

struct Case {
  std::int64_t seq_len = 4096;
  std::int64_t heads_q = 1;
  std::int64_t heads_kv = 1;
  std::int64_t head_dim = 128;
  DataType type = DataType::fp32;
  bool causal = false;
  int threads = 1;
  /// The block is chunks 0 and 2 * zigzag_cp - 1 of the sequence cut into 2 * zigzag_cp; 0: all of it.
  std::int64_t zigzag_cp = 0;
  double dropout = 0.0;  ///< probability
};

/// Queries and keys of the same positions, normally distributed.
class BlockProblem {
 public:
  explicit BlockProblem(const Case& setup);
  BlockProblem(const BlockProblem&) = delete;  // buffers know their ledger
  BlockProblem& operator=(const BlockProblem&) = delete;
  ~BlockProblem() = default;

  void forward();
  /// Needs out and lse of forward().
  void backward();

  /// FLOPs of the visible pairs: 4 head_dim forward and 10 head_dim backward per pair and query head.
  [[nodiscard]] double forward_flops() const;
  [[nodiscard]] double backward_flops() const;

 private:
  /// A tensor of the case's type with normally distributed elements.
  [[nodiscard]] Buffer random_tensor(std::int64_t heads, unsigned seed);
  /// `count` fp32 zeros.
  [[nodiscard]] Buffer zeros(std::int64_t count);

  [[nodiscard]] QueryBlock query() const;
  [[nodiscard]] KvBlock kv() const;

  Case setup_;
  std::array<std::int64_t, 2> offsets_;  ///< of the one document
  AttentionMask mask_;
  PositionSet positions_;
  BlockRule rule_;
  std::unique_ptr<AttentionKernel> kernel_;
  MemoryLedger ledger_;
  Buffer q_, k_, v_, dout_;
  Buffer out_, lse_, sum_, delta_, dq_, dk_, dv_;
};

}  // namespace hcp::bench
