/// The kernels of devices, run on the host through the source shim, behind the interface of all attention
/// kernels.
#pragma once

#include <memory>

#include "kernels/attention_kernel.hpp"
#include "tests/simt/launch.hpp"

namespace hcp::test {

enum class FullVisits : bool { masked, as_they_are };

/// @param full_visits  of the forward pass
[[nodiscard]] std::unique_ptr<AttentionKernel> make_simt_kernel(
    simt::Order order = simt::Order::warp_wise, FullVisits full_visits = FullVisits::as_they_are);

}  // namespace hcp::test
