/// A transport that brings ordering mistakes to light.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "src/comm/transport.hpp"

namespace hcp {

/// Passes everything on to `inner`, as late as a transport may, by times drawn from `seed` and the rank:
/// * post and wait each begin after a random time of at most `longest_delay`;
/// * every second set on average is started only inside the next wait, whichever set that is for;
/// * receive buffers are filled with 0xFF at post, so they are garbage until their wait;
/// * Ticket::wait throws std::logic_error if a send buffer of the set holds other bytes than at post.
/// The bytes that arrive are those of `inner`.
[[nodiscard]] std::unique_ptr<Transport> make_delayed_transport(
    std::unique_ptr<Transport> inner, std::uint64_t seed,
    std::chrono::microseconds longest_delay = std::chrono::milliseconds{2});

}  // namespace hcp
