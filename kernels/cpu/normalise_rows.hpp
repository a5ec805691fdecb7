/// The end of the forward pass: the output divided by the sums of its rows, and their log-sum-exp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/row_vectors.hpp"

namespace hcp::row_arithmetic {

/// Half as many values as fp32 fill a register, in fp32 and in double.
template <int lanes>
struct WideVectors {
  typedef float Floats __attribute__((vector_size(2 * lanes)));
  typedef double Doubles __attribute__((vector_size(4 * lanes)));
  typedef std::uint64_t Words __attribute__((vector_size(4 * lanes)));
};

/// log2(x) with an absolute error below 1e-10, and a relative one where it is near 0; x positive and normal,
/// or +inf or NaN, which are returned. x = 2^k m with m in [sqrt(1/2), sqrt(2)), and ln m = 2 artanh(t) with
/// t = (m - 1) / (m + 1), |t| < 0.172: the first term left out of the series, 2/13 t^13 / ln 2, is below
/// 3e-11.
template <typename Isa>
[[gnu::always_inline]] inline auto log2_of(typename WideVectors<Isa::lanes>::Doubles x) ->
    typename WideVectors<Isa::lanes>::Doubles {
  using Doubles = typename WideVectors<Isa::lanes>::Doubles;
  using Words = typename WideVectors<Isa::lanes>::Words;
  constexpr std::uint64_t sqrt_half = 0x3fe6'a09e'667f'3bcd;
  constexpr std::uint64_t offset = 1024;  // keeps k + offset positive
  // Adding its bits to those of 2^52 turns a small integer into a double.
  constexpr std::uint64_t integer_bits = 0x4330'0000'0000'0000;
  const Words bits = (Words)x;
  const Words shifted_k = (bits - sqrt_half + (offset << 52)) >> 52;
  const Doubles k = (Doubles)(shifted_k + integer_bits) - (0x1p52 + static_cast<double>(offset));
  const Doubles m = (Doubles)(bits - (shifted_k << 52) + (offset << 52));
  const Doubles t = (m - 1.0) / (m + 1.0);
  const Doubles t2 = t * t;
  Doubles series = t2 * (1.0 / 11.0) + 1.0 / 9.0;
  series = series * t2 + 1.0 / 7.0;
  series = series * t2 + 1.0 / 5.0;
  series = series * t2 + 1.0 / 3.0;
  series = series * t2 + 1.0;
  constexpr double two_over_ln2 = 0x1.71547652b82fep+1;
  const Doubles logarithm = k + t * series * two_over_ln2;
  return x < __builtin_inf() ? logarithm : x;
}

/// Divides a row; `divisor` and its reciprocal are normal numbers. Where a multiplication and an addition are
/// rounded once, the quotient's error corrects it to the nearest number, faster than the processor divides
/// (Markstein 1990, doi:10.1147/rd.341.0111).
template <typename Isa>
[[gnu::always_inline]] inline void divide_row(float* row, float divisor, std::int64_t elements) {
  const Floats<Isa> divisors = Floats<Isa>{} + divisor;
  const Floats<Isa> reciprocals = Floats<Isa>{} + 1.0F / divisor;
  const auto divided = [&](Floats<Isa> values) {
    if constexpr (!Isa::fused_multiply_add) {
      return values / divisors;
    }
    const Floats<Isa> quotients = values * reciprocals;
    const Floats<Isa> errors = values - quotients * divisors;
    const Floats<Isa> nearest = quotients + errors * reciprocals;
    return nearest == nearest ? nearest : quotients;  // an infinity has no error to correct
  };
  auto* const bytes = reinterpret_cast<std::byte*>(row);
  std::int64_t i = 0;
#pragma GCC unroll 4
  for (; i + Isa::lanes <= elements; i += Isa::lanes) {
    store(bytes + i * 4, divided(load<Floats<Isa>>(bytes + i * 4)));
  }
  if (i < elements) {
    const std::int64_t rest = (elements - i) * 4;
    store_some(bytes + i * 4, divided(load_some<Floats<Isa>>(bytes + i * 4, rest)), rest);
  }
}

template <typename Isa>
void normalise(float* out, const float* max, const float* sum, std::int64_t rows, std::int64_t elements,
               float* lse) {
  using NarrowFloats = typename WideVectors<Isa::lanes>::Floats;
  using Doubles = typename WideVectors<Isa::lanes>::Doubles;
  constexpr double ln2 = 0x1.62e42fefa39efp-1;
  constexpr std::int64_t group = Isa::lanes / 2;
  for (std::int64_t first = 0; first < rows; first += group) {
    const std::int64_t count = rows - first < group ? rows - first : group;
    const auto maxima = load_up_to<NarrowFloats>(reinterpret_cast<const std::byte*>(max + first), count * 4);
    const auto sums = load_up_to<NarrowFloats>(reinterpret_cast<const std::byte*>(sum + first), count * 4);
    const Doubles exact_sums = __builtin_convertvector(sums, Doubles);
    const Doubles logarithms = (__builtin_convertvector(maxima, Doubles) + log2_of<Isa>(exact_sums)) * ln2;
    const NarrowFloats lses =
        __builtin_convertvector(exact_sums == 0.0 ? Doubles{} - __builtin_inf() : logarithms, NarrowFloats);
    store_up_to(reinterpret_cast<std::byte*>(lse + first), lses, count * 4);
    for (std::int64_t row = 0; row < count; ++row) {
      divide_row<Isa>(out + (first + row) * elements, sums[row] == 0.0F ? 1.0F : sums[row], elements);
    }
  }
}

}  // namespace hcp::row_arithmetic
