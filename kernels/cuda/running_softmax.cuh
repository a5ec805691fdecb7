/// One row of a softmax whose scores arrive a tile at a time, and how it joins what other blocks left.
///
/// Maxima are in units of log2, as RunningOutput::max.
/// @source Dao 2023, arXiv:2307.08691, section 3.1
#pragma once

#include <cfloat>
#include <cstdint>

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/kernel_parameters.hpp"
#include "kernels/cuda/scalars.cuh"

namespace hcp::cuda {

/// From q k^T to units of log2. Never 0, so that it leaves -inf of hidden pairs what it is; where the softmax
/// scale is 0, so small that exp2 of every scaled score is 1.
HCP_DEVICE float score_scale(const BlockShape& shape) {
  return fmaxf(shape.softmax_scale * log2_e, FLT_MIN);
}

/// What exponents are counted from: the maximum, or any number if there is none yet.
HCP_DEVICE float reference_of(float max) {
  return max == -infinity ? 0.0F : max;
}

/// Of the tiles so far. Several lanes may share a row: all know the maximum, each has its part of the sum.
struct RunningSoftmax {
  float max = -infinity;
  float sum = 0.0F;

  /// Takes over a new maximum.
  /// @return what old sums are multiplied by
  HCP_DEVICE float raise(float new_max) {
    const float factor = new_max == max ? 1.0F : device::exp2(max - new_max);
    max = new_max;
    sum *= factor;
    return factor;
  }
};

/// A row of RunningOutput without its elements.
struct RowState {
  float max;
  float sum;
};

/// What the elements of a row are multiplied by when its two parts are added.
struct MergeFactors {
  float before;
  float added;
};

/// Adds `block`, with its whole sum, to `row`. As long as the maximum of the row stays, nothing of it is
/// scaled.
HCP_DEVICE MergeFactors merge(RowState& row, const RunningSoftmax& block) {
  const float max = fmaxf(row.max, block.max);
  const float reference = reference_of(max);
  const MergeFactors factors{row.max == max ? 1.0F : device::exp2(row.max - reference),
                             block.max == max ? 1.0F : device::exp2(block.max - reference)};
  row = {max, row.sum * factors.before + block.sum * factors.added};
  return factors;
}

/// Where a row and a head stand in RunningOutput::max and ::sum.
HCP_DEVICE std::int64_t state_place(const BlockShape& shape, int row, int head) {
  return static_cast<std::int64_t>(row) * shape.heads_q + head;
}

}  // namespace hcp::cuda
