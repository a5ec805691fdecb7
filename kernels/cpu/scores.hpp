/// Products of a group of rows, as many as a register tile has, with the keys of its run: scores [rows, keys]
/// and what is made of them.
#pragma once

#include <cstdint>

#include "kernels/cpu/product.hpp"
#include "kernels/cpu/tile_functions.hpp"
#include "kernels/cpu/tile_keys.hpp"
#include "kernels/cpu/vectors.hpp"

namespace hcp::tile {

/// scores[row, key] = factor * sum over dim of rows[row] keys[key], in every panel of keys that the run
/// meets; of the first and the last perhaps only the half that it meets.
/// @param key_panels as pack_columns, from the origin of the run
template <typename Isa, typename Operands, int score_stride>
inline void score_products(const typename Operands::Word* rows, const typename Operands::Word* key_panels,
                           int dim, int row_count, const GroupRun& run, float factor, float* scores) {
  constexpr int width = panel_width<Isa>;
  constexpr Strides along_dims{dim_stride, 1};
  const int steps = dim / Operands::values;
  for (int key = run.begin / width * width; key < run.end; key += width) {
    const bool first_half = run.begin < key + Isa::lanes;
    const bool second_half = key + Isa::lanes < run.end;
    const auto* b = key_panels + key * steps;
    if (first_half && second_half) {
      group_product<Isa, Operands, 2, along_dims, Update::scale>(rows, b, steps, row_count, scores + key,
                                                                 score_stride, &factor);
    } else {
      const int half = first_half ? 0 : Isa::lanes;
      group_product<Isa, Operands, 1, along_dims, Update::scale>(rows, b + half, steps, row_count,
                                                                 scores + key + half, score_stride, &factor);
    }
  }
}

/// Puts two vectors of one row where the scores of the panel of `key` were, as words with steps along the
/// keys.
template <typename Isa, typename Operands>
[[gnu::always_inline]] inline void store_in_order(float* row, int key, const Floats<Isa> (&values)[2]) {
  if constexpr (Operands::values == 1) {
    store(row + key, values[0]);
    store(row + key + Isa::lanes, values[1]);
  } else {
    store(row + key / 2, Isa::narrow(values[0], values[1]));
  }
}

/// Copies [rows, columns] floats.
static inline void copy_columns(const float* from, std::int64_t from_stride, float* to,
                                std::int64_t to_stride, int rows, int columns) {
  for (int row = 0; row < rows; ++row) {
    __builtin_memcpy(to + row * to_stride, from + row * from_stride,
                     static_cast<std::size_t>(columns) * sizeof(float));
  }
}

/// c[row, column], rows `c_stride` apart, (+)= sum over the keys of the run of weights[row, key] panels[key,
/// column].
/// @param weights words as store_in_order leaves them
/// @param panels as pack_panels, from the origin of the run
/// @param factor [rows], for Update::rescale
template <typename Isa, typename Operands, int score_stride, Update update>
inline void row_products(const float* weights, const typename Operands::Word* panels,
                         std::int64_t panel_words, int columns, int row_count, const GroupRun& run, float* c,
                         std::int64_t c_stride, const float* factor = nullptr) {
  constexpr int width = panel_width<Isa>;
  constexpr Strides along_scores{score_stride, 1};
  const int first_step = run.begin / Operands::values;
  const int steps = (run.end + Operands::values - 1) / Operands::values - first_step;
  const auto* a = reinterpret_cast<const typename Operands::Word*>(weights) + first_step;
  const auto* b = panels + first_step * width;
  int column = 0;
  for (; column + width <= columns; column += width) {
    group_product<Isa, Operands, 2, along_scores, update>(a, b, steps, row_count, c + column, c_stride,
                                                          factor);
    b += panel_words;
  }
  if (column < columns) {  // what follows a row of c belongs to somebody else
    float whole[group_rows * width];
    copy_columns(c + column, c_stride, whole, width, row_count, columns - column);
    group_product<Isa, Operands, 2, along_scores, update>(a, b, steps, row_count, whole, width, factor);
    copy_columns(whole, width, c + column, c_stride, row_count, columns - column);
  }
}

}  // namespace hcp::tile
