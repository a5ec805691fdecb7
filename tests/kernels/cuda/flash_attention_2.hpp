/// What FlashAttention-2 reads and writes with its published tile shapes: by formula, nothing of it is run.
#pragma once

#include <vector>

#include "tests/kernels/cuda/kernel_work.hpp"

namespace hcp::test {

/// Forward and backward at head dims 64, 128, 192 and 256 (both tensors), without dropout, on sm_90: one
/// visit of a whole tile, loads of the block's own rows left out. The backward pass is one kernel of five
/// products.
/// @source github.com/Dao-AILab/flash-attention, csrc/flash_attn/src: flash_fwd_launch_template.h and
/// flash_bwd_launch_template.h (shapes, for the shared memory of an H100), kernel_traits.h (warps, layouts)
[[nodiscard]] std::vector<KernelProxy> flash_attention_2();

}  // namespace hcp::test
