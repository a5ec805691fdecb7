/// Row by row operations on host memory, for the kernels that compute there. Single-threaded; the bits do not
/// depend on how the rows are cut into calls.
#pragma once

#include <cstdint>

#include "kernels/attention_kernel.hpp"

namespace hcp {

/// As AttentionKernel::row_dot.
/// @throws std::invalid_argument if the shapes of out and dout disagree
void row_dot_host(ConstTensorView out, ConstTensorView dout, float* delta);

/// As AttentionKernel::max_logits.
void max_logits_host(const float* max, std::int64_t rows, std::int64_t heads, float* logits);

/// As AttentionKernel::finish_forward.
void finish_forward_host(const RunningOutput& running, std::int64_t rows, std::int64_t heads,
                         std::int64_t dim_v, float* lse, const float* sinks = nullptr);

/// As AttentionKernel::copy_rows. Rows of equal type are copied bit by bit.
void copy_rows_host(const BasicRowTable<const std::byte>& source, const BasicRowTable<std::byte>& target,
                    std::int64_t rows, std::int64_t elements);

/// As AttentionKernel::add_rows.
/// @throws std::invalid_argument unless target.type is fp32
void add_rows_host(const BasicRowTable<const std::byte>& source, const BasicRowTable<std::byte>& target,
                   std::int64_t rows, std::int64_t elements);

}  // namespace hcp
