/// The one clock of the program.
#pragma once

namespace hcp {

/// Seconds of a monotonic clock whose zero is the same for all processes of one host.
[[nodiscard]] double now_s();

}  // namespace hcp
