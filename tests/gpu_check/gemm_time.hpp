/// The rate of a large matrix product, to hold attention against.
#pragma once

#include <optional>

#include "kernels/cuda/back_end.hpp"

namespace hcp::gpu_check {

struct GemmTime {
  double seconds = 0.0;
  double flops = 0.0;
};

/// c = a b with bf16 matrices of 8192 x 8192, sums in fp32, by the machine's cuBLAS.
/// @return nothing where no cuBLAS can be loaded
/// @throws std::runtime_error if it fails
[[nodiscard]] std::optional<GemmTime> time_gemm(BackEnd& back_end);

}  // namespace hcp::gpu_check
