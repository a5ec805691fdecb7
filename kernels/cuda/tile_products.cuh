/// Products of tiles in shared memory on tensor cores, 16 rows per warp or several groups of 16 that share
/// what is read of the right side.
#pragma once

#include <cstdint>

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/mma_tile.cuh"

namespace hcp::cuda {

/// c[16, 8 tiles] += a[row_a .. row_a + 16, dim] b[row_b .. row_b + 8 tiles, dim]^T.
template <typename Element, int tiles, int rows_a, int rows_b, int dim>
HCP_DEVICE void multiply_transposed(float (&c)[tiles][4], const SharedTile<rows_a, dim>& a, int row_a,
                                    const SharedTile<rows_b, dim>& b, int row_b) {
  const int lane = device::fresh_lane();
#pragma unroll
  for (int step = 0; step < dim / 16; ++step) {
    std::uint32_t left[4];
    a.load_a(left, row_a, step, lane);
#pragma unroll
    for (int pair = 0; pair < tiles / 2; ++pair) {
      std::uint32_t right[4];
      b.load_b_of_rows(right, row_b + 16 * pair, step, lane);
      Element::multiply(c[2 * pair], left, right[0], right[1]);
      Element::multiply(c[2 * pair + 1], left, right[2], right[3]);
    }
  }
}

/// As above, of group g of c with rows row_a + 16 g of a.
template <typename Element, int groups, int tiles, int rows_a, int rows_b, int dim>
HCP_DEVICE void multiply_transposed(float (&c)[groups][tiles][4], const SharedTile<rows_a, dim>& a, int row_a,
                                    const SharedTile<rows_b, dim>& b, int row_b) {
  const int lane = device::fresh_lane();
#pragma unroll
  for (int step = 0; step < dim / 16; ++step) {
    std::uint32_t left[groups][4];
#pragma unroll
    for (int group = 0; group < groups; ++group) {
      a.load_a(left[group], row_a + 16 * group, step, lane);
    }
#pragma unroll
    for (int pair = 0; pair < tiles / 2; ++pair) {
      std::uint32_t right[4];
      b.load_b_of_rows(right, row_b + 16 * pair, step, lane);
#pragma unroll
      for (int group = 0; group < groups; ++group) {
        Element::multiply(c[group][2 * pair], left[group], right[0], right[1]);
        Element::multiply(c[group][2 * pair + 1], left[group], right[2], right[3]);
      }
    }
  }
}

/// c[16, dim] += a[16, 16] b[16 step .. 16 step + 16, dim].
template <typename Element, int rows, int dim>
HCP_DEVICE void multiply_rows(float (&c)[dim / 8][4], const std::uint32_t (&a)[4],
                              const SharedTile<rows, dim>& b, int step) {
  const int lane = device::fresh_lane();
#pragma unroll
  for (int pair = 0; pair < dim / 16; ++pair) {
    std::uint32_t right[4];
    b.load_b_of_columns(right, step, 16 * pair, lane);
    Element::multiply(c[2 * pair], a, right[0], right[1]);
    Element::multiply(c[2 * pair + 1], a, right[2], right[3]);
  }
}

/// As above, of every group.
template <typename Element, int groups, int rows, int dim>
HCP_DEVICE void multiply_rows(float (&c)[groups][dim / 8][4], const std::uint32_t (&a)[groups][4],
                              const SharedTile<rows, dim>& b, int step) {
  const int lane = device::fresh_lane();
#pragma unroll
  for (int pair = 0; pair < dim / 16; ++pair) {
    std::uint32_t right[4];
    b.load_b_of_columns(right, step, 16 * pair, lane);
#pragma unroll
    for (int group = 0; group < groups; ++group) {
      Element::multiply(c[group][2 * pair], a[group], right[0], right[1]);
      Element::multiply(c[group][2 * pair + 1], a[group], right[2], right[3]);
    }
  }
}

/// An A of 16 x 16 from two neighbouring C of 16 x 8.
template <typename Element>
HCP_DEVICE void pack_a(std::uint32_t (&a)[4], const float (&left)[4], const float (&right)[4]) {
  a[0] = Element::pack(left[0], left[1]);
  a[1] = Element::pack(left[2], left[3]);
  a[2] = Element::pack(right[0], right[1]);
  a[3] = Element::pack(right[2], right[3]);
}

/// target[row, column] += factor c[row, column] for row < rows, column < columns; rows `stride` apart, all
/// even.
template <int dim>
HCP_DEVICE void add_fragments(const float (&c)[dim / 8][4], float factor, float* target, std::int64_t stride,
                              int rows, int columns) {
  struct alignas(2 * sizeof(float)) Pair {
    float low;
    float high;
  };
  const int lane = device::thread() % warp_lanes;
#pragma unroll
  for (int which = 0; which < 2; ++which) {
    const int row = fragment_row(lane, which);
    if (row < rows) {
#pragma unroll
      for (int tile = 0; tile < dim / 8; ++tile) {
        const int column = 8 * tile + fragment_column(lane);
        if (column < columns) {
          auto* pair = reinterpret_cast<Pair*>(target + row * stride + column);
          const Pair before = *pair;
          *pair = {before.low + factor * c[tile][2 * which], before.high + factor * c[tile][2 * which + 1]};
        }
      }
    }
  }
}

}  // namespace hcp::cuda
