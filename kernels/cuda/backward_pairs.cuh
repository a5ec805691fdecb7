/// The arithmetic of the backward pass on single pairs of a query and a key.
/// @source Dao 2023, arXiv:2307.08691, section 3.1.2
#pragma once

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/scalars.cuh"

namespace hcp::cuda {

/// What a row of queries brings into its probabilities and their gradients.
struct RowFacts {
  float lse;  ///< in units of log2; +inf makes every P of the row 0
  float delta;
};

/// Of a row that lies beyond the last one, or saw no key: it contributes nothing.
HCP_DEVICE RowFacts no_row() {
  return {infinity, 0.0F};
}

HCP_DEVICE RowFacts row_facts(float lse, float delta) {
  return lse == -infinity ? no_row() : RowFacts{lse * log2_e, delta};
}

}  // namespace hcp::cuda
