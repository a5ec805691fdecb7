/// The CUDA back end. Headers that include this one know nothing of CUDA.
#pragma once

#include "kernels/back_end.hpp"

namespace hcp {

/// What computes on one device; all of it in the order of one stream. The host waits for none of it but in
/// PhaseClock::read, for copies of its memory, and where it says so.
/// @param device  index as in DeviceSearch; becomes the calling thread's current one
/// @throws std::runtime_error if it does not answer, or this program was built without CUDA
[[nodiscard]] BackEnd make_cuda_back_end(int device);

}  // namespace hcp
