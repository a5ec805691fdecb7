/// The end of a job whose ranks wait for each other in vain.
#pragma once

#include <string>

namespace hcp {

/// Prints `message`, then which ranks are waited for, and ends the job on all ranks with ExitStatus::error.
/// Takes `seconds_to_listen` for it, in which the other ranks that wait say where they do; so it is for
/// timeouts alone.
[[noreturn]] void give_up(const std::string& message);

/// Longer than the deadlines of the transports and that of the watchdog lie apart.
inline constexpr double seconds_to_listen = 3.0;

}  // namespace hcp
