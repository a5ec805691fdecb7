/// Copies of the rows of a tensor in the layouts that the products read.
#pragma once

#include <cstdint>

#include "kernels/cpu/product.hpp"
#include "kernels/cpu/tile_functions.hpp"
#include "kernels/cpu/vectors.hpp"

namespace hcp::tile {

/// Head dims are multiples of 8, so rows are converted in chunks that divide 8.
template <typename Isa>
inline constexpr int chunk = Isa::lanes < 8 ? Isa::lanes : 8;

template <typename Isa>
struct Chunk {
  typedef float Floats __attribute__((vector_size(sizeof(float) * chunk<Isa>)));
  typedef std::uint32_t Words __attribute__((vector_size(sizeof(std::uint32_t) * chunk<Isa>)));
  typedef std::uint16_t Halves __attribute__((vector_size(sizeof(std::uint16_t) * chunk<Isa>)));
};

/// The `count` (a multiple of 8) elements of row `row` as fp32.
template <typename Isa>
inline void widen_row(const HeadRows& source, std::int64_t row, int count, float* target) {
  using Wide = typename Chunk<Isa>::Floats;
  using WideWords = typename Chunk<Isa>::Words;
  if (source.type == DataType::fp32) {
    __builtin_memcpy(target, source.data + row * source.stride * 4,
                     static_cast<std::size_t>(count) * sizeof(float));
    return;
  }
  const std::byte* from = source.data + row * source.stride * 2;
  for (int i = 0; i < count; i += chunk<Isa>) {
    const auto words = __builtin_convertvector(load<typename Chunk<Isa>::Halves>(from + i * 2), WideWords);
    WideWords wide;
    if (source.type == DataType::bf16) {
      wide = words << 16;
    } else {
      // The exponent of fp16 moves into that of fp32 by a multiplication, which is right for subnormals too;
      // infinities and NaN (all exponent bits set) have to be put there by hand.
      const WideWords magnitude = (words & 0x7FFFU) << 13;
      const WideWords finite = (WideWords)((Wide)magnitude * 0x1p112F);
      const WideWords special = (WideWords)(magnitude >= 0x7C00U << 13) & 0x7F800000U;
      wide = finite | special | ((words & 0x8000U) << 16);
    }
    store(target + i, wide);
  }
}

/// Asks for rows [first_row, last_row), so that they are near when their turn comes.
static inline void prefetch_rows(const HeadRows& source, int first_row, int last_row, int dim) {
  constexpr int line = 64;
  const auto element = static_cast<std::int64_t>(source.type == DataType::fp32 ? 4 : 2);
  for (int row = first_row; row < last_row; ++row) {
    const std::byte* begin = source.data + row * source.stride * element;
    for (std::int64_t byte = 0; byte < dim * element; byte += line) {
      __builtin_prefetch(begin + byte);
    }
  }
}

/// Rows that packing asks for ahead: they lie apart from each other, where the processor does not see them
/// coming.
inline constexpr int prefetch_distance = 6;

/// The words of one row, steps along the head dim.
template <typename Isa, typename Operands>
inline void words_of_row(const HeadRows& source, std::int64_t row, int dim, typename Operands::Word* target) {
  if constexpr (Operands::values == 1) {
    widen_row<Isa>(source, row, dim, target);
  } else {
    __builtin_memcpy(target, source.data + row * source.stride * 2, static_cast<std::size_t>(dim) * 2);
  }
}

/// `rows` rows [rows, dim] from `first_row` on as A operand, `dim_stride` apart.
template <typename Isa, typename Operands>
inline void pack_rows(const HeadRows& source, int first_row, int rows, int dim,
                      typename Operands::Word* target) {
  for (int row = 0; row < rows; ++row) {
    words_of_row<Isa, Operands>(source, first_row + row, dim, target + row * dim_stride);
  }
}

/// Transposes a square of words, one vector per row: in each round neighbouring blocks of `size` change
/// places across the diagonal.
template <typename Isa>
[[gnu::always_inline]] inline void transpose(Words<Isa> (&rows)[Isa::lanes]) {
#pragma GCC unroll 4
  for (int size = 1; size < Isa::lanes; size *= 2) {
    const Ints<Isa> lane = lane_numbers<Isa>();
    const Ints<Isa> odd_block = (lane & size) != 0;  // all bits set
    const Ints<Isa> upper = odd_block ? (lane ^ size) + Isa::lanes : lane;
    const Ints<Isa> lower = odd_block ? lane + Isa::lanes : lane ^ size;
#pragma GCC unroll 16
    for (int row = 0; row < Isa::lanes; ++row) {
      if ((row & size) == 0) {
        const Words<Isa> first = rows[row];
        const Words<Isa> second = rows[row + size];
        rows[row] = __builtin_shuffle(first, second, upper);
        rows[row + size] = __builtin_shuffle(first, second, lower);
      }
    }
  }
}

/// rows [rows, dim] as B operand with the rows along the columns and steps along the dim: panels
/// [rows / panel_width] of [dim / values, panel_width]; rows up to a whole panel are zero.
template <typename Isa, typename Operands>
inline void pack_columns(const HeadRows& source, int rows, int dim, typename Operands::Word* target) {
  constexpr int lanes = Isa::lanes;
  constexpr int width = panel_width<Isa>;
  const int steps = dim / Operands::values;
  alignas(64) typename Operands::Word words[lanes][max_head_dim + lanes];
  for (int first = 0; first < rows; first += lanes) {
    for (int i = 0; i < lanes; ++i) {
      const int row = first + i;
      if (row < rows) {
        prefetch_rows(source, row + prefetch_distance, smaller(row + prefetch_distance + 1, rows), dim);
        words_of_row<Isa, Operands>(source, row, dim, words[i]);
      } else {
        __builtin_memset(words[i], 0, static_cast<std::size_t>(steps) * sizeof(float));
      }
    }
    typename Operands::Word* columns = target + first / width * width * steps + first % width;
    for (int step = 0; step < steps; step += lanes) {
      Words<Isa> square[lanes];
#pragma GCC unroll 16
      for (int i = 0; i < lanes; ++i) {
        square[i] = load<Words<Isa>>(words[i] + step);
      }
      transpose<Isa>(square);
#pragma GCC unroll 16
      for (int i = 0; i < lanes; ++i) {
        if (step + i < steps) {
          store(columns + (step + i) * width, square[i]);
        }
      }
    }
  }
  if (rows % width != 0 && rows % width <= lanes) {  // the second half of the last panel
    typename Operands::Word* columns = target + rows / width * width * steps + lanes;
    for (int step = 0; step < steps; ++step) {
      store(columns + step * width, Words<Isa>{});
    }
  }
}

/// rows [rows, dim] as B operand with the dim along the columns and steps along the rows: panels
/// [dim / panel_width], `panel_words` apart, of [rows / values, panel_width]. Columns up to whole vectors and
/// the row that completes the last step are zero.
template <typename Isa, typename Operands>
inline void pack_panels(const HeadRows& source, int rows, int dim, std::int64_t panel_words,
                        typename Operands::Word* target) {
  constexpr int width = panel_width<Isa>;
  constexpr int values = Operands::values;
  typename Operands::Word words[max_head_dim + width];
  for (int row = 0; row < rows; row += values) {
    prefetch_rows(source, row + prefetch_distance, smaller(row + prefetch_distance + values, rows), dim);
    if constexpr (values == 1) {
      words_of_row<Isa, Operands>(source, row, dim, words);
    } else {
      std::uint16_t even[max_head_dim];
      std::uint16_t odd[max_head_dim] = {};
      __builtin_memcpy(even, source.data + row * source.stride * 2, static_cast<std::size_t>(dim) * 2);
      if (row + 1 < rows) {
        __builtin_memcpy(odd, source.data + (row + 1) * source.stride * 2, static_cast<std::size_t>(dim) * 2);
      }
      for (int i = 0; i < dim; ++i) {
        words[i] = even[i] | static_cast<std::uint32_t>(odd[i]) << 16;
      }
    }
    __builtin_memset(words + dim, 0, width * sizeof(float));
    typename Operands::Word* step = target + row / values * width;
    for (int column = 0; column < dim; column += width) {
      __builtin_memcpy(step, words + column, width * sizeof(float));
      step += panel_words;
    }
  }
}

}  // namespace hcp::tile
