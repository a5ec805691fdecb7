/// What a rank computes with: arithmetic, the memory it works in, and the clock of what it does.
#pragma once

#include <memory>

#include "kernels/attention_kernel.hpp"
#include "kernels/buffer.hpp"
#include "kernels/stopwatch.hpp"

namespace hcp {

namespace cuda {
class Stream;
}

/// All of it in one memory space and in one order of work.
struct BackEnd {
  std::shared_ptr<MemorySource> memory;
  std::unique_ptr<AttentionKernel> kernel;
  std::unique_ptr<PhaseClock> clock;
  std::shared_ptr<cuda::Stream> stream;  ///< that is the order of work on a device, and that transports order
                                         ///< themselves against; null on the host
};

/// Of a kernel that computes in the host's memory and is done when it returns.
[[nodiscard]] BackEnd make_host_back_end(std::unique_ptr<AttentionKernel> kernel);

}  // namespace hcp
