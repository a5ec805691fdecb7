#include "kernels/cuda/check.hpp"

#include <stdexcept>
#include <string>

namespace hcp::cuda {

void check(cudaError_t result, std::string_view call) {
  if (result == cudaSuccess) {
    return;
  }
  static_cast<void>(cudaGetLastError());
  throw std::runtime_error{std::string{call} + ": " + cudaGetErrorString(result) + " (" +
                           cudaGetErrorName(result) + ')'};
}

}  // namespace hcp::cuda
