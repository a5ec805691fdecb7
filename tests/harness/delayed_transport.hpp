/// A transport that brings ordering mistakes to light.
#pragma once

#include <cstdint>
#include <memory>

#include "src/comm/transport.hpp"

namespace hcp {

/// Passes everything on to `inner`, as late as a transport may, by times drawn from `seed` and the rank:
/// * post and wait each begin after 0 to 2 ms;
/// * every second set on average is started only inside the next wait, whichever set that is for, so a send
///   buffer that is overwritten before its wait goes out with wrong values;
/// * receive buffers are filled with 0xFF at post, so they are garbage until their wait.
/// The bytes that arrive are those of `inner`.
[[nodiscard]] std::unique_ptr<Transport> make_delayed_transport(std::unique_ptr<Transport> inner,
                                                                std::uint64_t seed);

}  // namespace hcp
