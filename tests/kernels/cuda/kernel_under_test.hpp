/// The kernels of devices behind the interface of all attention kernels, with all tensors in the host's
/// memory. So the same tests run them on the host, through the source shim, and on a device.
#pragma once

#include <memory>

#include "kernels/attention_kernel.hpp"

namespace hcp::test {

/// Each program that tests them defines it.
[[nodiscard]] std::unique_ptr<AttentionKernel> make_kernel_under_test();

}  // namespace hcp::test
