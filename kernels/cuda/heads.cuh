/// Heads of a block of attention.
#pragma once

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/kernel_parameters.hpp"

namespace hcp::cuda {

/// As HeadMap::kv_head_of.
HCP_DEVICE int kv_head_of(const BlockShape& shape, int head) {
  return (shape.first_query_head + head) / shape.queries_per_kv - shape.first_kv_head;
}

}  // namespace hcp::cuda
