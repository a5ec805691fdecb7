#include "tests/ptx/conformance/micro_kernels.hpp"

#include "tests/ptx/conformance/lane_instructions.cuh"
#include "tests/ptx/conformance/warp_instructions.cuh"

namespace hcp::ptx {

const std::vector<MicroKernel>& micro_kernels() {
  return registered_kernels();
}

}  // namespace hcp::ptx
