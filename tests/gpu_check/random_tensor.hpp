/// Data for timings.
#pragma once

#include "kernels/back_end.hpp"
#include "kernels/buffer.hpp"

namespace hcp::gpu_check {

/// `count` elements of bf16 in the memory of a back end, uniform in (-1, 1): zeros would make a device faster
/// than it is.
[[nodiscard]] Buffer random_tensor(BackEnd& back_end, MemoryLedger& ledger, std::int64_t count,
                                   unsigned seed);

}  // namespace hcp::gpu_check
