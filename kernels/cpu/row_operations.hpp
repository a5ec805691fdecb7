/// AttentionKernel's operations on rows for the host kernel, at the speed of memory. Where whole rows lie
/// side by side the table is one long run. The bits do not depend on the number of threads.
#pragma once

#include <cstdint>

#include "kernels/attention_kernel.hpp"
#include "kernels/cpu/row_functions.hpp"

namespace hcp {

class RowOperations {
 public:
  /// With up to `threads` OpenMP threads per call.
  RowOperations(const RowFunctions& functions, int threads) : functions_{functions}, threads_{threads} {}

  /// As AttentionKernel::max_logits.
  void max_logits(const float* max, std::int64_t rows, std::int64_t heads, float* logits) const;

  /// As AttentionKernel::finish_forward.
  void finish_forward(const RunningOutput& running, std::int64_t rows, std::int64_t heads, std::int64_t dim_v,
                      float* lse, const float* sinks = nullptr) const;

  /// As AttentionKernel::sink_gradients; sums in fp64.
  void sink_gradients(const float* sinks, const float* lse, const float* delta, std::int64_t rows,
                      std::int64_t heads, float* dsinks) const;

  /// As AttentionKernel::row_dot.
  /// @throws std::invalid_argument if the shapes of out and dout disagree
  void row_dot(const ConstTensorView& out, const ConstTensorView& dout, float* delta) const;

  /// As AttentionKernel::copy_rows. Rows of equal type are copied bit by bit.
  void copy_rows(const BasicRowTable<const std::byte>& source, const BasicRowTable<std::byte>& target,
                 std::int64_t rows, std::int64_t elements) const;

  /// As AttentionKernel::add_rows.
  /// @throws std::invalid_argument unless target.type is fp32
  void add_rows(const BasicRowTable<const std::byte>& source, const BasicRowTable<std::byte>& target,
                std::int64_t rows, std::int64_t elements) const;

 private:
  const RowFunctions& functions_;
  int threads_;
};

}  // namespace hcp
