/// The kernels of the backward pass, by what they are made for. All take one BackwardParameters.
#pragma once

#include <span>

#include "kernels/cuda/kernel_entry.hpp"
#include "kernels/data_type.hpp"

namespace hcp::cuda {

/// What makes dk and dv of a block: one kernel for both, or one for each. All of a list have the same tiles,
/// own_rows of keys and other_rows of queries, and so the same schedule. Launched over (work, heads_kv).
/// @throws std::invalid_argument as check_head_dims
[[nodiscard]] std::span<const KernelEntry> backward_keys_kernel_entries(DataType type, int dim_qk, int dim_v,
                                                                        bool dropping);

/// What makes dq; own_rows of queries and other_rows of keys. Launched over (work, heads_q).
/// @throws std::invalid_argument as check_head_dims
[[nodiscard]] const KernelEntry& backward_queries_kernel_entry(DataType type, int dim_qk, int dim_v,
                                                               bool dropping);

}  // namespace hcp::cuda
