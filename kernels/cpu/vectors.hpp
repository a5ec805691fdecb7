/// Vectors of one instruction set, written with the compiler's vector extension.
///
/// This and the headers that include it are templates over a class `Isa` that lives in the anonymous
/// namespace of one translation unit, so every instantiation is internal to it: code for different
/// instruction sets never meets at link time. For the same reason nothing here calls inline functions of the
/// standard library. `Isa` describes a micro-kernel:
///   lanes  fp32 values of a vector register
///   group  the register tile of a product is 3 * group rows x 2 vectors
#pragma once

#include <cstdint>

namespace hcp::tile {

template <typename Isa>
struct Vectors {
  typedef float Floats __attribute__((vector_size(sizeof(float) * Isa::lanes)));
  typedef std::int32_t Ints __attribute__((vector_size(sizeof(std::int32_t) * Isa::lanes)));
  typedef std::uint32_t Words __attribute__((vector_size(sizeof(std::uint32_t) * Isa::lanes)));
};
template <typename Isa>
using Floats = typename Vectors<Isa>::Floats;
template <typename Isa>
using Ints = typename Vectors<Isa>::Ints;
template <typename Isa>
using Words = typename Vectors<Isa>::Words;

/// Rows that are worked on side by side, one per lane of two registers.
template <typename Isa>
inline constexpr int panel_rows = 2 * Isa::lanes;

/// 2^x with a relative error below 1.2e-7; 0 for x < -125. x must be below 127.
/// The polynomial is the minimax fit of degree 6 (relative error 2e-9) to 2^f on [-0.5, 0.5] with p(0) = 1.
template <typename Isa>
[[gnu::always_inline]] inline Floats<Isa> exp2_of(Floats<Isa> x) {
  constexpr float lowest = -125.0F;
  constexpr float round_to_integer = 0x1.8p23F;  // adding it leaves the nearest integer in the last bits
  const Floats<Isa> clamped = x < lowest ? Floats<Isa>{} + lowest : x;
  const Floats<Isa> shifted = clamped + round_to_integer;
  const Floats<Isa> f = clamped - (shifted - round_to_integer);
  Floats<Isa> p = f * 0x1.41fbbcp-13F + 0x1.5f3e54p-10F;
  p = p * f + 0x1.3b2d4cp-7F;
  p = p * f + 0x1.c6aee8p-5F;
  p = p * f + 0x1.ebfbdcp-3F;
  p = p * f + 0x1.62e430p-1F;
  p = p * f + 1.0F;
  const Floats<Isa> power = (Floats<Isa>)((Ints<Isa>)p + ((Ints<Isa>)shifted << 23));
  return x < lowest ? Floats<Isa>{} : power;
}

}  // namespace hcp::tile
