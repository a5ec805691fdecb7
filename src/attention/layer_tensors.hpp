/// The tensors of one layer that its caller owns: this rank's queries of q, dout, out and dq, and
/// its keys of k, v, dk and dv.
#pragma once

#include <array>

#include "kernels/mirror.hpp"
#include "src/exchange/exchange_plan.hpp"
#include "src/exchange/plan_memory.hpp"

namespace hcp {

class LayerTensors {
 public:
  /// Memory for what `passes` need, in the shapes of the plan.
  /// @param memory  of the kernel; must outlive the tensors
  LayerTensors(const ExchangePlan& plan, PassSelection passes, MemoryLedger& ledger,
               MemorySource& memory = host_memory());

  /// [rows, heads, dim] where the kernel computes; empty where the passes do not need it.
  [[nodiscard]] TensorView view(KnownArray array) const;
  /// The same where the host can reach it, with the values of the last to_host.
  [[nodiscard]] TensorView host_view(KnownArray array) const;

  /// All tensors; as Mirror.
  void to_kernel();
  void to_host();

 private:
  std::array<Mirror, known_arrays> mirrors_;
  std::array<TensorView, known_arrays> shapes_;  ///< without data
};

}  // namespace hcp
