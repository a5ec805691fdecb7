/// Tiles of fp32 rows in shared memory and products of them without tensor cores.
///
/// A block has 16 x 16 threads. Of a product of two tiles of 32 rows, thread (y, x) makes rows 2 y, 2 y + 1
/// and columns x, x + 16, ..: so a warp reads the one side twice and the other from as many banks as it has
/// lanes.
#pragma once

#include <cstdint>

#include "kernels/cuda/device.cuh"

namespace hcp::cuda {

inline constexpr int plain_rows = 32;  ///< of a tile
inline constexpr int plain_edge = 16;
inline constexpr int plain_threads = plain_edge * plain_edge;

HCP_DEVICE int plain_x() {
  return device::thread() % plain_edge;
}
HCP_DEVICE int plain_y() {
  return device::thread() / plain_edge;
}

/// [plain_rows, columns], an odd number apart so that equal columns of neighbouring rows lie in different
/// banks.
template <int columns>
struct PlainTile {
  static constexpr int stride = columns + 1;
  static constexpr int elements = plain_rows * stride;

  float* data = nullptr;

  HCP_DEVICE float& at(int row, int column) const { return data[row * stride + column]; }

  /// Row r from global + r * global_stride for r < valid_rows, `valid_columns` of it; the rest becomes 0.
  HCP_DEVICE void load(const float* global, std::int64_t global_stride, int valid_rows,
                       int valid_columns) const {
    constexpr int places = plain_rows * columns / plain_threads;  // of a thread
    static_assert(plain_rows * columns % plain_threads == 0 && places % 4 == 0);
#pragma unroll 4
    for (int i = 0; i < places; ++i) {
      const int place = device::thread() + i * plain_threads;
      const int row = place / columns;
      const int column = place % columns;
      at(row, column) =
          row < valid_rows && column < valid_columns ? global[row * global_stride + column] : 0.0F;
    }
  }
};

/// The thread's elements of own other^T: [i][j] is row 2 y + i, column x + 16 j. `used_columns` is a multiple
/// of 8, as head dims are.
template <int columns>
HCP_DEVICE void plain_products(float (&products)[2][2], const PlainTile<columns>& own,
                               const PlainTile<columns>& other, int used_columns) {
  products[0][0] = products[0][1] = products[1][0] = products[1][1] = 0.0F;
#pragma unroll 1
  for (int first = 0; first < used_columns; first += 8) {
#pragma unroll
    for (int column = first; column < first + 8; ++column) {
      const float left[2]{own.at(2 * plain_y(), column), own.at(2 * plain_y() + 1, column)};
      const float right[2]{other.at(plain_x(), column), other.at(plain_x() + plain_edge, column)};
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          products[i][j] += left[i] * right[j];
        }
      }
    }
  }
}

/// sums += weights [plain_rows, plain_rows] other, elements as in plain_products. The products of a tile are
/// summed apart, so that the errors of long sums do not grow with their length.
template <int columns>
HCP_DEVICE void add_plain_products(float (&sums)[2][columns / plain_edge],
                                   const PlainTile<plain_rows>& weights, const PlainTile<columns>& other) {
  float of_tile[2][columns / plain_edge] = {};
#pragma unroll 1
  for (int row = 0; row < plain_rows; ++row) {
    const float left[2]{weights.at(2 * plain_y(), row), weights.at(2 * plain_y() + 1, row)};
#pragma unroll
    for (int j = 0; j < columns / plain_edge; ++j) {
      const float right = other.at(row, plain_x() + plain_edge * j);
      of_tile[0][j] += left[0] * right;
      of_tile[1][j] += left[1] * right;
    }
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int j = 0; j < columns / plain_edge; ++j) {
      sums[i][j] += of_tile[i][j];
    }
  }
}

/// target[row, column] += factor * the element, for row < rows, column < used_columns; rows `stride` apart.
template <int columns>
HCP_DEVICE void add_plain_sums(const float (&sums)[2][columns / plain_edge], float factor, float* target,
                               std::int64_t stride, int rows, int used_columns) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int row = 2 * plain_y() + i;
#pragma unroll
    for (int j = 0; j < columns / plain_edge; ++j) {
      const int column = plain_x() + plain_edge * j;
      if (row < rows && column < used_columns) {
        target[row * stride + column] += factor * sums[i][j];
      }
    }
  }
}

}  // namespace hcp::cuda
