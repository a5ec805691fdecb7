/// The CUDA back end. Headers that include this one know nothing of CUDA.
#pragma once

#include <memory>

#include "kernels/back_end.hpp"

namespace hcp {

namespace cuda {
class Stream;
}

/// What computes on one device; all of it in the order of one stream. The host waits for none of it but in
/// PhaseClock::read, for copies of its memory, and where it says so.
struct CudaBackEnd : BackEnd {
  std::shared_ptr<cuda::Stream> stream;  ///< device transports order themselves against it
};

/// @param device  index as in DeviceSearch; becomes the calling thread's current one
/// @throws std::runtime_error if it does not answer, or this program was built without CUDA
[[nodiscard]] CudaBackEnd make_cuda_back_end(int device);

}  // namespace hcp
