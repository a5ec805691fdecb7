/// The kernels of the backward pass and of rows, run on the host through the source shim, behind the
/// interface of all attention kernels.
#pragma once

#include <memory>

#include "kernels/attention_kernel.hpp"
#include "tests/simt/launch.hpp"

namespace hcp::test {

/// Forward blocks are the reference kernel's.
[[nodiscard]] std::unique_ptr<AttentionKernel> make_simt_backward_kernel(simt::Order order);

}  // namespace hcp::test
