/// The matrix products of attention, C (+)= A B, from one register-blocked micro-kernel.
///
/// Operands are 32-bit words, one per step of the inner loop: an fp32 value, or two bf16 values that follow
/// each other along the summed dimension. B lies in panels of panel_width columns, one step of a panel after
/// the other; words of A are broadcast, so A may be read along rows or along columns at the same price.
/// Leading dimensions are constants: then every address of the inner loop is one register plus a constant.
#pragma once

#include <cstdint>

#include "kernels/cpu/tile_functions.hpp"
#include "kernels/cpu/vectors.hpp"

namespace hcp::tile {

/// Products of fp32 values.
template <typename Isa>
struct Fp32Operands {
  using Word = float;
  static constexpr int values = 1;  ///< of a word

  [[gnu::always_inline]] static Floats<Isa> multiply_add(Floats<Isa> sum, Word a, Floats<Isa> b) {
    return sum + a * b;
  }
};

/// Products of bf16 values with sums in fp32. `Isa` provides
///   dot(sum, a, b)     sum + a.even * b.even + a.odd * b.odd in every lane
///   narrow(low, high)  the values of two vectors rounded to bf16, in order
///   pair(even, odd)    word i is even[i] and odd[i] rounded to bf16
template <typename Isa>
struct Bf16Operands {
  using Word = std::uint32_t;
  static constexpr int values = 2;

  [[gnu::always_inline]] static Floats<Isa> multiply_add(Floats<Isa> sum, Word a, Words<Isa> b) {
    return Isa::dot(sum, Words<Isa>{} + a, b);
  }
};

template <typename Isa, typename Operands>
struct OperandVector {
  typedef typename Operands::Word Type __attribute__((vector_size(sizeof(float) * Isa::lanes)));
};

/// Leading dimensions, in words. An odd number of cache lines each, so that columns spread over all sets of a
/// cache.
inline constexpr int dim_stride = max_head_dim + 16;  ///< of matrices with a head dim along their rows
inline constexpr int score_stride(int keys) {         ///< of scores [rows, keys] and of what replaces them
  return keys + 16;
}

/// Where the word of A for (row, step) lies: row * row_stride + step * step_stride.
struct Strides {
  int row_stride;
  int step_stride;
};

/// Rows of a register tile: a group. With two vectors that makes 12 sums, which every processor can keep in
/// registers and which hide the latency of its multiply-adds (tests/bench/README.md has other sizes).
inline constexpr int group_rows = 6;

enum class Update {
  scale,       ///< C = A B * factor[0]
  accumulate,  ///< C = C + A B
  rescale,     ///< C = C * factor[row] + A B
};

/// One register tile: C [rows, vectors * lanes], `c_stride` apart, from `depth` steps.
template <typename Isa, typename Operands, int rows, int vectors, Strides strides, Update update>
[[gnu::noinline]] void micro_kernel(const typename Operands::Word* a, const typename Operands::Word* b,
                                    std::int64_t depth, float* c, std::int64_t c_stride,
                                    const float* factor) {
  using Operand = typename OperandVector<Isa, Operands>::Type;
  using Vector = Floats<Isa>;
  if constexpr (update == Update::accumulate || update == Update::rescale) {
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      __builtin_prefetch(c + i * c_stride, 1);
      __builtin_prefetch(c + i * c_stride + (vectors - 1) * Isa::lanes, 1);
    }
  }
  Vector sum[rows][vectors] = {};
  for (std::int64_t step = 0; step < depth; ++step) {
    Operand b_row[vectors];
#pragma GCC unroll 2
    for (int j = 0; j < vectors; ++j) {
      b_row[j] = load<Operand>(b + j * Isa::lanes);
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      const auto a_word = a[i * strides.row_stride];
#pragma GCC unroll 2
      for (int j = 0; j < vectors; ++j) {
        sum[i][j] = Operands::multiply_add(sum[i][j], a_word, b_row[j]);
      }
    }
    a += strides.step_stride;
    b += panel_width<Isa>;
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < vectors; ++j) {
      float* target = c + i * c_stride + j * Isa::lanes;
      if constexpr (update == Update::scale) {
        sum[i][j] *= factor[0];
      }
      if constexpr (update == Update::accumulate) {
        sum[i][j] += load<Vector>(target);
      }
      if constexpr (update == Update::rescale) {
        sum[i][j] += load<Vector>(target) * factor[i];
      }
      store(target, sum[i][j]);
    }
  }
}

/// C of 1 .. group_rows rows and one or two vectors.
template <typename Isa, typename Operands, int vectors, Strides strides, Update update,
          int most_rows = group_rows>
[[gnu::always_inline]] inline void group_product(const typename Operands::Word* a,
                                                 const typename Operands::Word* b, std::int64_t depth,
                                                 int rows, float* c, std::int64_t c_stride,
                                                 const float* factor = nullptr) {
  if constexpr (most_rows > 1) {
    if (rows < most_rows) {
      group_product<Isa, Operands, vectors, strides, update, most_rows - 1>(a, b, depth, rows, c, c_stride,
                                                                            factor);
      return;
    }
  }
  micro_kernel<Isa, Operands, most_rows, vectors, strides, update>(a, b, depth, c, c_stride, factor);
}

}  // namespace hcp::tile
