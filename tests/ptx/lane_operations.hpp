/// Handlers for instructions that treat every lane alike, made from one function of plain values.
///
/// An operation is a type with a static member of(values...) and is called for all lanes, also those that are
/// masked out: it must be defined for every value.
#pragma once

#include <cstdint>

#include "tests/ptx/decoding.hpp"
#include "tests/ptx/lane_loop.hpp"
#include "tests/ptx/warp.hpp"

namespace hcp::ptx {

/// operands: result, a
template <typename Result, typename A, typename Operation>
void unary(Warp& warp, const Instruction& instruction, LaneMask mask) {
  const A* a = warp.source<A>(instruction.operands[1]);
  set_lanes(warp.destination<Result>(instruction.operands[0]), mask,
            [=](int l) { return static_cast<Result>(Operation::of(a[l])); });
}

/// operands: result, a, b
template <typename Result, typename A, typename B, typename Operation>
void binary(Warp& warp, const Instruction& instruction, LaneMask mask) {
  const A* a = warp.source<A>(instruction.operands[1]);
  const B* b = warp.source<B>(instruction.operands[2]);
  set_lanes(warp.destination<Result>(instruction.operands[0]), mask,
            [=](int l) { return static_cast<Result>(Operation::of(a[l], b[l])); });
}

/// operands: result, a, b, c
template <typename Result, typename A, typename B, typename C, typename Operation>
void ternary(Warp& warp, const Instruction& instruction, LaneMask mask) {
  const A* a = warp.source<A>(instruction.operands[1]);
  const B* b = warp.source<B>(instruction.operands[2]);
  const C* c = warp.source<C>(instruction.operands[3]);
  set_lanes(warp.destination<Result>(instruction.operands[0]), mask,
            [=](int l) { return static_cast<Result>(Operation::of(a[l], b[l], c[l])); });
}

/// Calls `make` with a value of the integer type of the host, for a choice of template at run time.
template <typename Make>
Handler for_integer(const Decoding& decoding, ScalarType type, Make make) {
  switch (type) {
    case ScalarType::u16:
    case ScalarType::b16:
      return make(std::uint16_t{});
    case ScalarType::s16:
      return make(std::int16_t{});
    case ScalarType::u32:
    case ScalarType::b32:
      return make(std::uint32_t{});
    case ScalarType::s32:
      return make(std::int32_t{});
    case ScalarType::u64:
    case ScalarType::b64:
      return make(std::uint64_t{});
    case ScalarType::s64:
      return make(std::int64_t{});
    default:
      decoding.refuse("type");
  }
}

/// As for_integer, by size alone.
template <typename Make>
Handler for_size(const Decoding& decoding, ScalarType type, Make make) {
  switch (bytes_of(type)) {
    case 2:
      return make(std::uint16_t{});
    case 4:
      return make(std::uint32_t{});
    case 8:
      return make(std::uint64_t{});
    default:
      decoding.refuse("type");
  }
}

/// Sets result operand 0 and the sources behind it, all of one type.
inline void take_operands(Decoding& decoding, ScalarType type, std::size_t sources) {
  decoding.expect_operands(sources + 1);
  decoding.result.operands[0] = decoding.destination(0, type);
  for (std::size_t i = 1; i <= sources; ++i) {
    decoding.result.operands[i] = decoding.source(i, type);
  }
}

}  // namespace hcp::ptx
