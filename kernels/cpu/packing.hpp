/// Copies of the rows of a tensor in the layouts that the products read, as fp32.
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

/// The first `count` (a multiple of 8) elements of row `row`.
template <typename Isa>
inline void widen_row(const HeadRows& source, std::int64_t row, int count, float* target) {
  using Wide = typename Chunk<Isa>::Floats;
  using Words = typename Chunk<Isa>::Words;
  if (source.type == DataType::fp32) {
    __builtin_memcpy(target, source.data + row * source.stride * 4,
                     static_cast<std::size_t>(count) * sizeof(float));
    return;
  }
  const std::byte* from = source.data + row * source.stride * 2;
  for (int i = 0; i < count; i += chunk<Isa>) {
    typename Chunk<Isa>::Halves halves;
    __builtin_memcpy(&halves, from + i * 2, sizeof(halves));
    const Words words = __builtin_convertvector(halves, Words);
    Words wide;
    if (source.type == DataType::bf16) {
      wide = words << 16;
    } else {
      // The exponent of fp16 moves into that of fp32 by a multiplication, which is right for subnormals too;
      // infinities and NaN (all exponent bits set) have to be put there by hand.
      const Words magnitude = (words & 0x7FFFU) << 13;
      const Words finite = (Words)((Wide)magnitude * 0x1p112F);
      const Words special = (Words)(magnitude >= 0x7C00U << 13) & 0x7F800000U;
      wide = finite | special | ((words & 0x8000U) << 16);
    }
    __builtin_memcpy(target + i, &wide, sizeof(wide));
  }
}

/// rows [rows, dim] as A operand with `along_dims`; rows up to whole groups are zero.
template <typename Isa>
inline void pack_rows(const HeadRows& source, int rows, int dim, float* target) {
  int row = 0;
  for (; row < rows; ++row) {
    widen_row<Isa>(source, row, dim, target + row * dim_stride);
  }
  for (; row % Isa::group != 0; ++row) {
    __builtin_memset(target + row * dim_stride, 0, static_cast<std::size_t>(dim) * sizeof(float));
  }
}

/// rows [rows, dim] as B operand with the dim along the columns: panels [dim / panel_rows] of
/// [tile_keys or tile_rows, panel_rows]; columns up to whole vectors are zero.
template <typename Isa, int panel_depth>
inline void pack_panels(const float* source, std::int64_t source_stride, int rows, int dim, float* target) {
  constexpr int width = panel_rows<Isa>;
  for (int column = 0; column < dim; column += width) {
    const int columns = dim - column < width ? dim - column : width;
    for (int row = 0; row < rows; ++row) {
      float* panel_row = target + row * width;
      __builtin_memcpy(panel_row, source + row * source_stride + column,
                       static_cast<std::size_t>(columns) * sizeof(float));
      __builtin_memset(panel_row + columns, 0, static_cast<std::size_t>(width - columns) * sizeof(float));
    }
    target += panel_depth * width;
  }
}

/// factor * rows^T as B operand with the rows along the columns: panels [rows / panel_rows] of
/// [dim, panel_rows]; rows up to a whole panel are zero.
/// @param source [rows, dim], `dim_stride` apart
template <typename Isa>
inline void pack_transposed(const float* source, int rows, int dim, float factor, float* target) {
  constexpr int width = panel_rows<Isa>;
  for (int first = 0; first < rows; first += width) {
    for (int row = first; row < first + width; ++row) {
      float* column = target + (row - first);
      const float* from = source + row * dim_stride;
      for (int i = 0; i < dim; ++i) {
        column[i * width] = row < rows ? from[i] * factor : 0.0F;
      }
    }
    target += dim * width;
  }
}

}  // namespace hcp::tile
