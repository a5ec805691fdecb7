/// The kernels of the forward pass, by what they are made for. All take one ForwardParameters and are
/// launched over (work, heads_q).
#pragma once

#include "kernels/cuda/kernel_entry.hpp"
#include "kernels/data_type.hpp"

namespace hcp::cuda {

/// own_rows of queries and other_rows of keys.
/// @throws std::invalid_argument as check_head_dims
[[nodiscard]] const KernelEntry& forward_kernel_entry(DataType type, int dim_qk, int dim_v, bool dropping);

}  // namespace hcp::cuda
