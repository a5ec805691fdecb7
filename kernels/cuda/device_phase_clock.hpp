/// Phases of a stream, measured by events on it; a range of NVTX for each.
#pragma once

#include <memory>

#include "kernels/cuda/stream.hpp"
#include "kernels/stopwatch.hpp"

namespace hcp::cuda {

/// The device's clock is set by the host's whenever it is read, when nothing runs.
[[nodiscard]] std::unique_ptr<PhaseClock> make_device_phase_clock(std::shared_ptr<Stream> stream);

}  // namespace hcp::cuda
