#include "tests/simt/warp_operations.hpp"

#include <cstddef>
#include <cstring>

#include "tests/simt/block.hpp"

namespace hcp::simt {
namespace {

struct Exchange {
  float value;
  int mask;
  float result;
};

void exchange_all(void* const* arguments) {
  for (int lane = 0; lane < warp_lanes; ++lane) {
    auto& own = *static_cast<Exchange*>(arguments[lane]);
    const auto& other = *static_cast<const Exchange*>(arguments[(lane ^ own.mask) % warp_lanes]);
    if (other.mask != own.mask) {
      Block::current().fail("lanes of a warp exchange with different masks");
    }
    own.result = other.value;
  }
}

struct MatrixLoad {
  std::uint32_t* fragment;
  const void* row;
};

constexpr int matrix_edge = 8;

template <bool transposed>
void load_all(void* const* arguments) {
  for (int matrix = 0; matrix < 4; ++matrix) {
    std::uint16_t elements[matrix_edge][matrix_edge];
    for (int row = 0; row < matrix_edge; ++row) {
      std::memcpy(elements[row], static_cast<const MatrixLoad*>(arguments[matrix_edge * matrix + row])->row,
                  sizeof(elements[row]));
    }
    for (int lane = 0; lane < warp_lanes; ++lane) {
      const int row = lane / 4;
      const int column = lane % 4 * 2;
      const std::uint32_t low = transposed ? elements[column][row] : elements[row][column];
      const std::uint32_t high = transposed ? elements[column + 1][row] : elements[row][column + 1];
      static_cast<MatrixLoad*>(arguments[lane])->fragment[matrix] = low | high << 16;
    }
  }
}

constexpr int mma_rows = 16;
constexpr int mma_columns = 8;
constexpr int mma_depth = 16;

struct Product {
  float* c;
  const std::uint32_t* a;
  std::uint32_t b[2];
};

/// Of register `index` of a fragment and its half: places as in PTX's figures of mma.m16n8k16.
template <DataType type>
void multiply_all(void* const* arguments) {
  std::uint16_t a_bits[mma_rows][mma_depth];
  std::uint16_t b_bits[mma_columns][mma_depth];
  for (int lane = 0; lane < warp_lanes; ++lane) {
    const auto& product = *static_cast<const Product*>(arguments[lane]);
    const int group = lane / 4;
    const int pair = lane % 4 * 2;
    for (int half = 0; half < 2; ++half) {
      for (int i = 0; i < 4; ++i) {
        a_bits[group + i % 2 * 8][pair + half + i / 2 * 8] =
            static_cast<std::uint16_t>(product.a[i] >> (16 * half));
      }
      for (int i = 0; i < 2; ++i) {
        b_bits[group][pair + half + i * 8] = static_cast<std::uint16_t>(product.b[i] >> (16 * half));
      }
    }
  }
  float a[mma_rows][mma_depth];
  float b[mma_columns][mma_depth];
  widen(type, reinterpret_cast<const std::byte*>(a_bits), a[0], mma_rows * mma_depth);
  widen(type, reinterpret_cast<const std::byte*>(b_bits), b[0], mma_columns * mma_depth);
  for (int lane = 0; lane < warp_lanes; ++lane) {
    const auto& product = *static_cast<const Product*>(arguments[lane]);
    for (int i = 0; i < 4; ++i) {
      const float* const row = a[lane / 4 + i / 2 * 8];
      const float* const column = b[lane % 4 * 2 + i % 2];
      float sum = 0.0F;
      for (int k = 0; k < mma_depth; ++k) {
        sum += row[k] * column[k];
      }
      product.c[i] += sum;
    }
  }
}

}  // namespace

float exchange(float value, int mask) {
  Exchange own{value, mask, 0.0F};
  Block::current().meet(Meeting::exchange, &own, exchange_all);
  return own.result;
}

void load_matrices(std::uint32_t (&fragment)[4], const void* row, bool transposed) {
  Block::current().check_shared(row, matrix_edge * sizeof(std::uint16_t));
  MatrixLoad load{fragment, row};
  if (transposed) {
    Block::current().meet(Meeting::load_transposed_matrices, &load, load_all<true>);
  } else {
    Block::current().meet(Meeting::load_matrices, &load, load_all<false>);
  }
}

void multiply(DataType type, float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  Product product{c, a, {b0, b1}};
  Block::current().meet(Meeting::multiply, &product,
                        type == DataType::bf16 ? multiply_all<DataType::bf16> : multiply_all<DataType::fp16>);
}

}  // namespace hcp::simt
