/// AttentionKernel on a device. All pointers that its calls get are to memory of the device, also those of
/// sinks and logits.
#pragma once

#include <memory>

#include "kernels/attention_kernel.hpp"
#include "kernels/cuda/device_memory.hpp"
#include "kernels/cuda/stream.hpp"

namespace hcp::cuda {

/// All calls return at once; what they ask for is done in their order on the stream.
/// @param memory  for the tables of blocks; of the same stream
[[nodiscard]] std::unique_ptr<AttentionKernel> make_cuda_attention_kernel(
    std::shared_ptr<Stream> stream, std::shared_ptr<DeviceMemory> memory);

}  // namespace hcp::cuda
