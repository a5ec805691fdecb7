/// Exact attention and its gradient over all ranks of a CP group: executes the exchange plan of one layer.
///
/// One code path for every scheme. What happens when is the plan's business; here are the arrays, the
/// accumulators and the order in which transport and kernel are called.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/attention_kernel.hpp"
#include "kernels/back_end.hpp"
#include "kernels/buffer.hpp"
#include "src/attention/layer_tensors.hpp"
#include "src/attention/phase_log.hpp"
#include "src/comm/transport.hpp"
#include "src/exchange/exchange_plan.hpp"
#include "src/exchange/plan_memory.hpp"

namespace hcp {

/// What of a pass is executed. Only `all` computes attention; the others measure.
enum class Work : std::uint8_t { all, communication, computation };

/// What the softmax of a layer takes and gives besides the scores, for each query head of the tensor-parallel
/// rank. Memory of the caller, where the kernel computes; empty where something is not wanted.
struct SoftmaxTerms {
  std::span<const float> sinks;  ///< [heads], as in AttentionKernel::finish_forward
  std::span<float> dsinks;       ///< [heads], set by backward: the share of the rows and heads that this rank
                                 ///< computes with; the sum over the CP group is the gradient
  std::span<float> max_logits;   ///< [heads], set by forward: the same of the largest scaled score; -inf for
                                 ///< heads that this rank does not compute with
};

class ContextParallelAttention {
 public:
  /// @param plan, back_end, transports, ledger, log  must outlive the attention
  /// @param rule        its heads and dropout.layer are set from `plan` and `layer`
  /// @param transports  one for each of plan.communicators
  /// @param layer       for the record, and for what dropout drops
  /// @throws std::invalid_argument if kernel and transports use different memory, a communicator has no
  /// transport, or the softmax terms do not cover the heads
  ContextParallelAttention(const ExchangePlan& plan, const BlockRule& rule, const BackEnd& back_end,
                           std::vector<Transport*> transports, MemoryLedger& ledger, PhaseLog& log, int layer,
                           const SoftmaxTerms& softmax = {});

  /// q, k, v to out and lse. Collective over the CP group. Done when it returns, as backward.
  /// @param backward_follows  keep what backward needs
  void forward(const LayerTensors& tensors, bool backward_follows, Work work = Work::all,
               const PhaseObserver& observe = {});

  /// q, k, v, out, lse, dout to dq, dk, dv. After forward with `backward_follows`. Collective over the CP
  /// group.
  void backward(const LayerTensors& tensors, Work work = Work::all, const PhaseObserver& observe = {});

 private:
  class Execution;

  const ExchangePlan& plan_;
  BlockRule rule_;
  SoftmaxTerms softmax_;
  AttentionKernel& kernel_;
  MemorySource& memory_;
  PhaseClock& clock_;
  std::vector<Transport*> transports_;
  MemoryLedger& ledger_;
  PhaseLog& log_;
  int layer_;
  ArrayLifetimes forward_alone_;
  ArrayLifetimes forward_saving_;
  ArrayLifetimes backward_;
  std::vector<Buffer> buffers_;  ///< by array; the caller's stay empty
};

}  // namespace hcp
