/// The kernels of the backward pass and of rows, run on the host through the source shim, behind the
/// interface of all attention kernels.
#pragma once

#include <memory>

#include "kernels/attention_kernel.hpp"

namespace hcp::test {

/// Forward blocks are the reference kernel's.
/// @param schedule  seed of the order in which the threads of a block take turns
[[nodiscard]] std::unique_ptr<AttentionKernel> make_simt_backward_kernel(unsigned schedule);

}  // namespace hcp::test
