// ldmatrix, stmatrix, mma.sync
//
// A register of a matrix fragment holds an 8 x 8 matrix of 16-bit values: lane l has row l / 4 and the
// columns 2 (l % 4) and the next. In the order of lanes that is the matrix row by row.
// @source PTX ISA 9.0, "Matrix fragments for mma.m16n8k16 with floating point type"
#include <array>
#include <cstring>
#include <string>

#include "tests/ptx/block.hpp"
#include "tests/ptx/lane_operations.hpp"
#include "tests/ptx/memory_spaces.hpp"
#include "tests/ptx/opcode_table.hpp"
#include "tests/ptx/rounding.hpp"

namespace hcp::ptx {

namespace {

constexpr std::size_t side = 8;
constexpr std::uint32_t row_bytes = 16;
using Matrix = std::array<std::uint16_t, side * side>;

Matrix transposed(const Matrix& matrix) {
  Matrix result;
  for (std::size_t row = 0; row < side; ++row) {
    for (std::size_t column = 0; column < side; ++column) {
      result[column * side + row] = matrix[row * side + column];
    }
  }
  return result;
}

bool is_whole_warp(Warp& warp, const Instruction& instruction, LaneMask mask) {
  if (mask != all_lanes) {
    warp.report(instruction, FindingKind::divergence, std::countr_zero(~mask), 0,
                "a matrix instruction by a part of the warp");
  }
  return mask == all_lanes;
}

// The addresses of the rows: lane l has that of row l % 8 of matrix l / 8.
LaneAddresses row_addresses(Warp& warp, const Instruction& instruction) {
  LaneAddresses addresses = warp.addresses(instruction.addresses[0]);
  for (std::uint64_t& address : addresses) {
    address = (address & ~generic_offset_mask) == generic_shared ? address & generic_offset_mask : address;
  }
  return addresses;
}

// elements: matrices
template <bool transposes>
void load_matrices(Warp& warp, const Instruction& instruction, LaneMask mask) {
  if (!is_whole_warp(warp, instruction, mask)) {
    return;
  }
  const std::size_t count = instruction.elements;
  const LaneAddresses addresses = row_addresses(warp, instruction);
  const LaneMask rows = count == 4 ? all_lanes : (1U << (side * count)) - 1;
  const LaneMask allowed = warp.access_shared({instruction, rows, addresses, row_bytes, AccessKind::read});
  for (std::size_t i = 0; i < count; ++i) {
    Matrix matrix;
    for (std::size_t row = 0; row < side; ++row) {
      std::uint16_t* values = matrix.data() + row * side;
      if ((allowed >> (i * side + row) & 1) != 0) {
        std::memcpy(values, warp.shared_data(addresses[i * side + row]), row_bytes);
      } else {
        std::memset(values, 0xff, row_bytes);
      }
    }
    const Matrix result = transposes ? transposed(matrix) : matrix;
    std::memcpy(warp.destination<std::uint16_t>(instruction.operands[i]), result.data(), sizeof(Matrix));
  }
}

template <bool transposes>
void store_matrices(Warp& warp, const Instruction& instruction, LaneMask mask) {
  if (!is_whole_warp(warp, instruction, mask)) {
    return;
  }
  const std::size_t count = instruction.elements;
  const LaneAddresses addresses = row_addresses(warp, instruction);
  const LaneMask rows = count == 4 ? all_lanes : (1U << (side * count)) - 1;
  const LaneMask allowed = warp.access_shared({instruction, rows, addresses, row_bytes, AccessKind::write});
  for (std::size_t i = 0; i < count; ++i) {
    Matrix matrix;
    std::memcpy(matrix.data(), warp.source<std::uint16_t>(instruction.operands[i]), sizeof(Matrix));
    matrix = transposes ? transposed(matrix) : matrix;
    for (std::size_t row = 0; row < side; ++row) {
      if ((allowed >> (i * side + row) & 1) != 0) {
        std::memcpy(warp.shared_data(addresses[i * side + row]), matrix.data() + row * side, row_bytes);
      }
    }
  }
}

// [row, column] of one 8 x 8 block
using Block8 = std::array<float, side * side>;

template <typename Format>
Block8 widened(Warp& warp, Operand operand) {
  const auto* bits = warp.source<std::uint16_t>(operand);
  Block8 block;
  for (std::size_t i = 0; i < block.size(); ++i) {
    block[i] = Format::widen(bits[i]);
  }
  return block;
}

// 8 floats side by side: the compiler would else turn the product around and shuffle.
using Row8 __attribute__((vector_size(side * sizeof(float)))) = float;

// B arrives column by column: result[k] is row k.
std::array<Row8, side> rows_of(const Block8& by_columns) {
  std::array<Row8, side> rows;
  for (std::size_t k = 0; k < side; ++k) {
    for (std::size_t column = 0; column < side; ++column) {
      rows[k][column] = by_columns[column * side + k];
    }
  }
  return rows;
}

// mma.m16n8k16 and .m16n8k8: D = A B + C with A [16, k] row by row and B [k, 8] column by column.
// operands: 4 of D, then those of A, of B and 4 of C; `Blocks` is k / 8.
template <typename Format, std::size_t Blocks>
void multiply(Warp& warp, const Instruction& instruction, LaneMask mask) {
  if (!is_whole_warp(warp, instruction, mask)) {
    return;
  }
  constexpr std::size_t first_a = 4;
  constexpr std::size_t first_b = first_a + 2 * Blocks;
  constexpr std::size_t first_c = first_b + Blocks;
  std::array<std::array<Row8, side>, Blocks> b;
  for (std::size_t block = 0; block < Blocks; ++block) {
    b[block] = rows_of(widened<Format>(warp, instruction.operands[first_b + block]));
  }
  for (std::size_t half = 0; half < 2; ++half) {  // rows 0 to 7, then 8 to 15
    std::array<Row8, side> sum{};
    for (std::size_t block = 0; block < Blocks; ++block) {
      const Block8 a = widened<Format>(warp, instruction.operands[first_a + 2 * block + half]);
      for (std::size_t k = 0; k < side; ++k) {
        for (std::size_t row = 0; row < side; ++row) {
          sum[row] += a[row * side + k] * b[block][k];
        }
      }
    }
    // Lane l holds the columns 2 (l % 4) and the next of row l / 4: the elements 2 l and 2 l + 1, in two
    // registers.
    Block8 elements;
    std::memcpy(elements.data(), sum.data(), sizeof(elements));
    for (std::size_t odd = 0; odd < 2; ++odd) {
      const auto* c = warp.source<float>(instruction.operands[first_c + 2 * half + odd]);
      auto* d = warp.destination<float>(instruction.operands[2 * half + odd]);
      for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
        d[lane] = elements[2 * lane + odd] + c[lane];
      }
    }
  }
}

void synchronise_whole_warp(Decoding& decoding) {
  decoding.result.flow = Flow::warp_sync;
  decoding.result.member_mask = decoding.kernel().always();
}

template <bool loads>
void decode_matrix_access(Decoding& decoding) {
  decoding.require("sync");
  decoding.require("aligned");
  decoding.require("m8n8");
  const std::string number = decoding.take_one_of({"x1", "x2", "x4"});
  const bool trans = decoding.take("trans");
  decoding.take_one_of({"shared::cta", "shared"});
  (void)decoding.type_of({ScalarType::b16});
  decoding.expect_operands(2);
  if (number.empty()) {
    decoding.refuse("number of matrices");
  }
  Instruction& result = decoding.result;
  const std::size_t count = number == "x1" ? 1 : number == "x2" ? 2 : 4;
  const auto& registers = decoding.list(loads ? 0 : 1, count);
  result.elements = static_cast<std::uint8_t>(count);
  for (std::size_t i = 0; i < count; ++i) {
    result.operands[i] = loads ? decoding.destination(registers[i], ScalarType::b32)
                               : decoding.source(registers[i], ScalarType::b32);
  }
  result.addresses[0] = decoding.address(loads ? 1 : 0);
  result.kind = loads ? InstructionKind::ldmatrix : InstructionKind::stmatrix;
  const Handler load = trans ? load_matrices<true> : load_matrices<false>;
  const Handler store = trans ? store_matrices<true> : store_matrices<false>;
  result.execute = loads ? load : store;
  synchronise_whole_warp(decoding);
}

void decode_mma(Decoding& decoding) {
  decoding.require("sync");
  decoding.require("aligned");
  const std::string shape = decoding.take_one_of({"m16n8k16", "m16n8k8"});
  decoding.require("row");
  decoding.require("col");
  (void)decoding.type_of({ScalarType::f32});
  const ScalarType type = decoding.type_of({ScalarType::f16, ScalarType::bf16});
  (void)decoding.type_of({type});
  (void)decoding.type_of({ScalarType::f32});
  decoding.expect_operands(4);
  if (shape.empty()) {
    decoding.refuse("shape");
  }
  Instruction& result = decoding.result;
  const std::size_t blocks = shape == "m16n8k16" ? 2 : 1;
  std::size_t next = 0;
  for (const OperandSyntax& d : decoding.list(0, 4)) {
    result.operands[next++] = decoding.destination(d, ScalarType::f32);
  }
  for (const OperandSyntax& a : decoding.list(1, 2 * blocks)) {
    result.operands[next++] = decoding.source(a, ScalarType::b32);
  }
  for (const OperandSyntax& b : decoding.list(2, blocks)) {
    result.operands[next++] = decoding.source(b, ScalarType::b32);
  }
  for (const OperandSyntax& c : decoding.list(3, 4)) {
    result.operands[next++] = decoding.source(c, ScalarType::f32);
  }
  result.kind = InstructionKind::mma;
  if (type == ScalarType::f16) {
    result.execute = blocks == 2 ? multiply<Float16, 2> : multiply<Float16, 1>;
  } else {
    result.execute = blocks == 2 ? multiply<BFloat16, 2> : multiply<BFloat16, 1>;
  }
  synchronise_whole_warp(decoding);
}

}  // namespace

void add_matrix_opcodes(OpcodeTable& table) {
  table.add("ldmatrix", {TypeClass::integer}, decode_matrix_access<true>);
  table.add("stmatrix", {TypeClass::integer}, decode_matrix_access<false>);
  table.add("mma", {TypeClass::single_or_double}, decode_mma);
}

}  // namespace hcp::ptx
