/// Vectors of one instruction set, written with the compiler's vector extension.
///
/// This and the headers that include it are templates over a class `Isa` that lives in the anonymous
/// namespace of one translation unit, so every instantiation is internal to it: code for different
/// instruction sets never meets at link time; what is no such template is static or always inlined. For the
/// same reason nothing here calls inline functions of the standard library. `Isa` describes an instruction
/// set:
///   lanes     fp32 values of a vector register
///   larger(a, b)  lane by lane, b where either is NaN
///   product_of_low_halves(a, b)  of 64-bit lanes, whole
/// and, where it multiplies bf16 values, what Bf16Operands (product.hpp) asks for.
#pragma once

#include <cstdint>

namespace hcp::tile {

inline constexpr float log2_e = 1.44269504F;
inline constexpr float infinity = __builtin_inff();

template <typename Isa>
struct Vectors {
  typedef float Floats __attribute__((vector_size(sizeof(float) * Isa::lanes)));
  typedef std::int32_t Ints __attribute__((vector_size(sizeof(std::int32_t) * Isa::lanes)));
  typedef std::uint32_t Words __attribute__((vector_size(sizeof(std::uint32_t) * Isa::lanes)));
  typedef std::uint64_t WideWords __attribute__((vector_size(sizeof(std::uint32_t) * Isa::lanes)));
  typedef std::uint16_t Halves __attribute__((vector_size(sizeof(std::uint16_t) * Isa::lanes)));
};
template <typename Isa>
using Floats = typename Vectors<Isa>::Floats;
template <typename Isa>
using Ints = typename Vectors<Isa>::Ints;
template <typename Isa>
using Words = typename Vectors<Isa>::Words;
template <typename Isa>
using WideWords = typename Vectors<Isa>::WideWords;  ///< half as many lanes
template <typename Isa>
using Halves = typename Vectors<Isa>::Halves;

/// Columns of a panel: what a register tile is wide.
template <typename Isa>
inline constexpr int panel_width = 2 * Isa::lanes;

/// `columns` rounded up to whole panels.
template <typename Isa>
[[gnu::always_inline]] constexpr int whole_panels(int columns) {
  return (columns + panel_width<Isa> - 1) / panel_width<Isa> * panel_width<Isa>;
}

template <typename T>
[[gnu::always_inline]] constexpr T smaller(T a, T b) {
  return b < a ? b : a;
}
template <typename T>
[[gnu::always_inline]] constexpr T larger(T a, T b) {
  return a < b ? b : a;
}

template <typename Vector>
[[gnu::always_inline]] inline Vector load(const void* memory) {
  Vector vector;
  __builtin_memcpy(&vector, memory, sizeof(vector));
  return vector;
}

template <typename Vector>
[[gnu::always_inline]] inline void store(void* memory, const Vector& vector) {
  __builtin_memcpy(memory, &vector, sizeof(vector));
}

/// 0, 1, 2, ...
template <typename Isa>
[[gnu::always_inline]] inline Ints<Isa> lane_numbers() {
  Ints<Isa> numbers{};
#pragma GCC unroll 16
  for (int lane = 0; lane < Isa::lanes; ++lane) {
    numbers[lane] = lane;
  }
  return numbers;
}

/// The larger of all lanes, in every lane.
template <typename Isa>
[[gnu::always_inline]] inline Floats<Isa> maximum_of_lanes(Floats<Isa> x) {
#pragma GCC unroll 4
  for (int distance = Isa::lanes / 2; distance > 0; distance /= 2) {
    x = Isa::larger(x, __builtin_shuffle(x, lane_numbers<Isa>() ^ distance));
  }
  return x;
}

/// The sum of all lanes, in every lane.
template <typename Isa>
[[gnu::always_inline]] inline Floats<Isa> sum_of_lanes(Floats<Isa> x) {
#pragma GCC unroll 4
  for (int distance = Isa::lanes / 2; distance > 0; distance /= 2) {
    x = x + __builtin_shuffle(x, lane_numbers<Isa>() ^ distance);
  }
  return x;
}

/// 2^x with a relative error below 1.2e-7 for x in [-126, 127); exactly 0 for x <= -127, subnormal in
/// between. The polynomial is the minimax fit of degree 6 (relative error 2e-9) to 2^f on [-0.5, 0.5] with
/// p(0) = 1; that makes the bits of p minus 127 exponents those of 0, so that the lower end needs no
/// comparison.
template <typename Isa>
[[gnu::always_inline]] inline Floats<Isa> exp2_of(Floats<Isa> x) {
  constexpr float lowest = -127.0F;
  constexpr float round_to_integer = 0x1.8p23F;  // adding it leaves the nearest integer in the last bits
  const Floats<Isa> clamped = Isa::larger(Floats<Isa>{} + lowest, x);
  const Floats<Isa> shifted = clamped + round_to_integer;
  const Floats<Isa> f = clamped - (shifted - round_to_integer);
  Floats<Isa> p = f * 0x1.41fbbcp-13F + 0x1.5f3e54p-10F;
  p = p * f + 0x1.3b2d4cp-7F;
  p = p * f + 0x1.c6aee8p-5F;
  p = p * f + 0x1.ebfbdcp-3F;
  p = p * f + 0x1.62e430p-1F;
  p = p * f + 1.0F;
  // Unsigned: what stands where no row sees a key may be of any size.
  return (Floats<Isa>)((Words<Isa>)p + ((Words<Isa>)shifted << 23));
}

}  // namespace hcp::tile
