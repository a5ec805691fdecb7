/// Data for timings.
#pragma once

#include "kernels/buffer.hpp"
#include "kernels/cuda/back_end.hpp"

namespace hcp::gpu_check {

/// `count` elements of bf16 on the device, uniform in (-1, 1): zeros would make a device faster than it is.
[[nodiscard]] Buffer random_tensor(CudaBackEnd& back_end, MemoryLedger& ledger, std::int64_t count,
                                   unsigned seed);

}  // namespace hcp::gpu_check
