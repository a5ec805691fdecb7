/// Failures of the CUDA runtime as exceptions.
#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

namespace hcp::cuda {

/// @param call  name of the function that gave the result, and of what it worked on where that helps
/// @throws std::runtime_error with both and CUDA's own words, unless the result is cudaSuccess. The error is
/// cleared, so that no later call is blamed for it.
void check(cudaError_t result, std::string_view call);

}  // namespace hcp::cuda
