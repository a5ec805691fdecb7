/// The kernels of the forward pass, run on the host through tests/simt, behind the interface of all attention
/// kernels.
#pragma once

#include <memory>

#include "kernels/attention_kernel.hpp"
#include "tests/simt/launch.hpp"

namespace hcp::test {

enum class FullVisits : bool { masked, as_they_are };

/// All but forward blocks is the reference kernel's, and backward blocks do nothing.
[[nodiscard]] std::unique_ptr<AttentionKernel> make_simt_forward_kernel(
    simt::Order order = simt::Order::warp_wise, FullVisits full_visits = FullVisits::as_they_are);

}  // namespace hcp::test
