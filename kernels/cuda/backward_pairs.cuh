/// The arithmetic of the backward pass on single pairs of a query and a key.
/// @source Dao 2023, arXiv:2307.08691, section 3.1.2
#pragma once

#include <cstdint>

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/scalars.cuh"
#include "kernels/query_rows.hpp"

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

/// The lowest `count` bits; none for a negative count, all from 32 on.
HCP_DEVICE std::uint32_t low_bits(int count) {
  return count >= 32 ? 0xFFFF'FFFFU : count <= 0 ? 0U : (1U << count) - 1U;
}

/// Bit i: whether the row sees key first_key + i.
HCP_DEVICE std::uint32_t seen_word(const RowKeys& keys, int first_key) {
  return (low_bits(keys.end[0] - first_key) & ~low_bits(keys.begin[0] - first_key)) |
         (low_bits(keys.end[1] - first_key) & ~low_bits(keys.begin[1] - first_key));
}

}  // namespace hcp::cuda
