/// Tiles of rows in shared memory and their fragments for mma.sync.m16n8k16.
///
/// Lane l of a warp holds, with g = l / 4 and t = l % 4:
///   of A [16 x 16] rows g and g + 8, columns 2 t, 2 t + 1 and 8 more: a[0] = (g, 2 t ..), a[1] = (g + 8, 2 t
///     ..), a[2] = (g, 2 t + 8 ..), a[3] = (g + 8, 2 t + 8 ..);
///   of B [16 x 8] column g, rows 2 t, 2 t + 1 in b0 and 2 t + 8, 2 t + 9 in b1;
///   of C [16 x 8] c[0], c[1] = (g, 2 t), (g, 2 t + 1) and c[2], c[3] = the same of row g + 8.
/// So two neighbouring C of 16 x 8 are, packed, an A of 16 x 16: products go into the next product in
/// registers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device.cuh"

namespace hcp::cuda {

inline constexpr int warp_lanes = 32;
inline constexpr int chunk_elements = 8;  ///< 16 bytes: what cp.async and ldmatrix move

/// `rows` rows of `columns` 16-bit elements in shared memory. Chunk c of row r lies at place c ^ (r % 8) of
/// the row, so that the eight rows of a matrix never share a bank.
template <int rows, int columns>
struct SharedTile {
  static_assert(columns % (8 * chunk_elements) == 0, "chunks are exchanged within groups of eight");
  static constexpr int row_chunks = columns / chunk_elements;
  static constexpr int bytes = rows * columns * 2;

  std::uint16_t* data = nullptr;

  HCP_DEVICE std::uint16_t* chunk(int row, int index) const {
    return data + row * columns + ((index ^ (row & 7)) * chunk_elements);
  }

  /// Begins to load row r of the tile from global + r * stride, for r < valid_rows, `valid_columns` elements
  /// of each (a multiple of 8); the rest becomes 0. By all `threads` threads of the block.
  template <int threads>
  HCP_DEVICE void load(const std::uint16_t* global, std::int64_t stride, int valid_rows,
                       int valid_columns) const {
    // Eight threads take 128 bytes of a row, and every eighth row is laid out alike: so all places of a
    // thread in shared memory are constants away from its first.
    constexpr int rows_at_once = threads / 8;
    static_assert(rows_at_once % 8 == 0 && rows % rows_at_once == 0);
    const int first_chunk = device::thread() % 8;
#pragma unroll 1
    for (int row = device::thread() / 8; row < rows; row += rows_at_once) {
      const std::uint16_t* const source = global + row * stride + first_chunk * chunk_elements;
      std::uint16_t* const target = chunk(row, first_chunk);
#pragma unroll
      for (int column = 0; column < columns; column += 8 * chunk_elements) {
        const bool valid = row < valid_rows && first_chunk * chunk_elements + column < valid_columns;
        device::copy_async(target + column, valid ? source + column : global, valid);
      }
    }
  }

  /// A of rows [row, row + 16), columns [16 step, 16 step + 16); `row` a multiple of 8, as below.
  HCP_DEVICE void load_a(std::uint32_t (&a)[4], int row, int step,
                         int lane = device::thread() % warp_lanes) const {
    device::load_matrices(a, data + row * columns + chunk_pair(lane % 16, lane / 16, step));
  }

  /// Two B, side by side, of the transposed tile: their columns are rows [row, row + 16) of the tile, their
  /// rows its columns [16 step, 16 step + 16). b[0], b[1] are the first, b[2], b[3] the second.
  HCP_DEVICE void load_b_of_rows(std::uint32_t (&b)[4], int row, int step,
                                 int lane = device::thread() % warp_lanes) const {
    device::load_matrices(b, data + row * columns + chunk_pair(lane % 8 + lane / 16 * 8, lane / 8 % 2, step));
  }

  /// Two B, side by side, of the tile itself: their rows are rows [16 step, 16 step + 16) of the tile, their
  /// columns [column, column + 16) its columns; `column` a multiple of 16.
  HCP_DEVICE void load_b_of_columns(std::uint32_t (&b)[4], int step, int column,
                                    int lane = device::thread() % warp_lanes) const {
    device::load_transposed_matrices(
        b, data + 16 * step * columns + chunk_pair(lane % 16, lane / 16, column / 16));
  }

 private:
  /// Where chunk 2 pair + which of a row lies. Exchanging within eight chunks is a bit operation on the place
  /// of chunk `which`: so all places of a lane come from one of them without a register for each.
  static HCP_DEVICE int chunk_pair(int row, int which, int pair) {
    const int first = row * columns + (which ^ (row & 7)) * chunk_elements;
    return (first ^ (pair % 4 * 2 * chunk_elements)) + pair / 4 * 8 * chunk_elements;
  }
};

/// Row of lane `lane` in C: which of the two, 0 or 1.
HCP_DEVICE int fragment_row(int lane, int which) {
  return lane / 4 + 8 * which;
}
/// Column of the lane's c[0] and c[2] in C.
HCP_DEVICE int fragment_column(int lane) {
  return lane % 4 * 2;
}

}  // namespace hcp::cuda
