/// The tensors of one layer that its caller owns: this rank's queries of q, dout, out and dq, and
/// its keys of k, v, dk and dv.
#pragma once

#include <array>

#include "kernels/buffer.hpp"
#include "src/exchange/exchange_plan.hpp"
#include "src/exchange/plan_memory.hpp"

namespace hcp {

class LayerTensors {
 public:
  /// Memory for what `passes` need, in the shapes of the plan.
  LayerTensors(const ExchangePlan& plan, PassSelection passes, MemoryLedger& ledger);

  /// [rows, heads, dim]; empty where the passes do not need it.
  [[nodiscard]] TensorView view(KnownArray array) const;

 private:
  std::array<Buffer, known_arrays> buffers_;
  std::array<TensorView, known_arrays> views_;
};

}  // namespace hcp
