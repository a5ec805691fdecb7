/// Exact attention and its gradient over all ranks of a CP group: executes the exchange plan of one layer.
///
/// One code path for every scheme. What happens when is the plan's business; here are the arrays, the
/// accumulators and the order in which transport and kernel are called.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/attention_kernel.hpp"
#include "kernels/buffer.hpp"
#include "src/attention/layer_tensors.hpp"
#include "src/attention/phase_log.hpp"
#include "src/comm/transport.hpp"
#include "src/exchange/exchange_plan.hpp"
#include "src/exchange/plan_memory.hpp"

namespace hcp {

/// What of a pass is executed. Only `all` computes attention; the others measure.
enum class Work : std::uint8_t { all, communication, computation };

class ContextParallelAttention {
 public:
  /// @param plan, kernel, transports, ledger, log  must outlive the attention
  /// @param transports  one for each of plan.communicators
  /// @param layer       for the record
  /// @throws std::invalid_argument if kernel and transports use different memory, or a communicator has no
  /// transport
  ContextParallelAttention(const ExchangePlan& plan, const BlockRule& rule, AttentionKernel& kernel,
                           std::vector<Transport*> transports, MemoryLedger& ledger, PhaseLog& log,
                           int layer);

  /// q, k, v to out and lse. Collective over the CP group.
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
  AttentionKernel& kernel_;
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
