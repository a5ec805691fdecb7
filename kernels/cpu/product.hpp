/// The matrix products of attention, C (+)= A B, from one register-blocked micro-kernel.
///
/// B lies in panels of panel_rows columns, one row of a panel after the other; elements of A are broadcast,
/// so A may be read along rows or along columns at the same price. All leading dimensions are constants: then
/// every address of the inner loop is one register plus a constant.
#pragma once

#include <cstdint>

#include "kernels/cpu/tile_functions.hpp"
#include "kernels/cpu/vectors.hpp"

namespace hcp::tile {

/// Leading dimensions, in floats. An odd number of cache lines each, so that columns spread over all sets of
/// a cache.
inline constexpr int dim_stride = max_head_dim + 16;  ///< of matrices with a head dim along their rows
inline constexpr int score_stride = tile_rows + 16;   ///< of scores [keys, rows] and of what replaces them

/// Where element (row, step) of A lies: row * row_stride + step * step_stride.
struct Strides {
  int row_stride;
  int step_stride;
};

enum class Update {
  store,       ///< C = A B
  accumulate,  ///< C = C + A B
  rescale,     ///< C = C * factor[row] + A B
};

/// One register tile: C [rows, vectors * lanes] from `depth` steps.
template <typename Isa, int rows, int vectors, Strides strides, int c_stride, Update update>
[[gnu::always_inline]] inline void micro_kernel(const float* a, const float* b, std::int64_t depth, float* c,
                                                const float* factor) {
  using Vector = Floats<Isa>;
  Vector sum[rows][vectors] = {};
  for (std::int64_t step = 0; step < depth; ++step) {
    Vector b_row[vectors];
#pragma GCC unroll 2
    for (int j = 0; j < vectors; ++j) {
      __builtin_memcpy(&b_row[j], b + j * Isa::lanes, sizeof(Vector));
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      const float a_element = a[i * strides.row_stride];
#pragma GCC unroll 2
      for (int j = 0; j < vectors; ++j) {
        sum[i][j] += a_element * b_row[j];
      }
    }
    a += strides.step_stride;
    b += panel_rows<Isa>;
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < vectors; ++j) {
      float* target = c + i * c_stride + j * Isa::lanes;
      if constexpr (update != Update::store) {
        Vector old;
        __builtin_memcpy(&old, target, sizeof(Vector));
        if constexpr (update == Update::rescale) {
          old *= factor[i];
        }
        sum[i][j] += old;
      }
      __builtin_memcpy(target, &sum[i][j], sizeof(Vector));
    }
  }
}

/// C of one panel of B: `rows` rows rounded up to whole groups, one or two vectors wide. A and C must have
/// the rows that rounding adds; what is in them does not matter.
template <typename Isa, int vectors, Strides strides, int c_stride, Update update>
[[gnu::noinline]] void panel_product(const float* a, const float* b, std::int64_t depth, std::int64_t rows,
                                     float* c, const float* factor) {
  constexpr int group = Isa::group;
  std::int64_t row = 0;
  for (; row + 2 * group < rows; row += 3 * group) {
    micro_kernel<Isa, 3 * group, vectors, strides, c_stride, update>(a + row * strides.row_stride, b, depth,
                                                                     c + row * c_stride, factor + row);
  }
  if (row + group < rows) {
    micro_kernel<Isa, 2 * group, vectors, strides, c_stride, update>(a + row * strides.row_stride, b, depth,
                                                                     c + row * c_stride, factor + row);
  } else if (row < rows) {
    micro_kernel<Isa, group, vectors, strides, c_stride, update>(a + row * strides.row_stride, b, depth,
                                                                 c + row * c_stride, factor + row);
  }
}

/// C [rows, columns] over as many panels of B as `columns` needs; panels are `panel_size` floats apart.
/// `factor` [rows] belongs to Update::rescale.
template <typename Isa, Strides strides, Update update>
inline void product(const float* a, const float* b, std::int64_t panel_size, std::int64_t depth,
                    std::int64_t rows, std::int64_t columns, float* c, const float* factor = nullptr) {
  std::int64_t column = 0;
  for (; column + Isa::lanes < columns; column += panel_rows<Isa>) {
    panel_product<Isa, 2, strides, dim_stride, update>(a, b, depth, rows, c + column, factor);
    b += panel_size;
  }
  if (column < columns) {
    panel_product<Isa, 1, strides, dim_stride, update>(a, b, depth, rows, c + column, factor);
  }
}

inline constexpr Strides along_dims{dim_stride, 1};       ///< A is [rows, dim]
inline constexpr Strides along_scores{score_stride, 1};   ///< A is [keys, rows]
inline constexpr Strides across_scores{1, score_stride};  ///< A is its transpose

}  // namespace hcp::tile
