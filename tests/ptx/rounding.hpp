/// Floating-point values as PTX rounds them: directed modes, subnormals flushed to zero, and the 16-bit
/// formats.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace hcp::ptx {

enum class Rounding { nearest_even, to_zero, down, up };

/// .ftz: a subnormal number becomes zero of its sign.
inline float flush(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  return std::bit_cast<float>((bits & 0x7f800000U) == 0 ? bits & 0x80000000U : bits);
}

/// .sat: into [0, 1], NaN becomes 0.
template <typename T>
T saturate(T x) {
  return x > T{0} ? (x < T{1} ? x : T{1}) : T{0};
}

/// a + b rounded to the odd neighbour where it is not exact: rounding that again, to half as many bits or
/// fewer, gives what rounding the exact sum would give.
/// @source Boldo, Melquiond 2008, Emulation of FMA and correctly rounded sums: proved algorithms using
/// rounding to odd
inline double add_to_odd(double a, double b) {
  const double sum = a + b;
  const double from_b = sum - a;
  const double error = (a - (sum - from_b)) + (b - from_b);
  const auto bits = std::bit_cast<std::uint64_t>(sum);
  if (error == 0 || std::isnan(error) || !std::isfinite(sum) || (bits & 1) != 0) {
    return sum;
  }
  const bool grows = (error > 0) == (sum > 0);
  return std::bit_cast<double>(grows ? bits + 1 : bits - 1);
}

/// `x`, exact or rounded to odd, as fp32.
inline float round_to_float(double x, Rounding rounding) {
  const float nearest = static_cast<float>(x);
  if (rounding == Rounding::nearest_even || std::isnan(nearest) || static_cast<double>(nearest) == x) {
    return nearest;
  }
  const bool is_above = static_cast<double>(nearest) > x;
  const bool wants_below = rounding == Rounding::down || (rounding == Rounding::to_zero && x > 0);
  if (is_above == wants_below) {
    const float infinity = std::numeric_limits<float>::infinity();
    return std::nextafter(nearest, is_above ? -infinity : infinity);
  }
  return nearest;
}

/// A 16-bit format: its exponent and fraction bits.
template <int ExponentBits, int FractionBits>
struct SmallFloat {
  static constexpr int smallest_exponent = 2 - (1 << (ExponentBits - 1));  ///< of a normal number
  static constexpr std::uint32_t infinity = ((1U << ExponentBits) - 1) << FractionBits;
  static constexpr std::uint16_t nan = 0x7fff;

  /// `x`, exact or rounded to odd, to nearest even or to zero.
  static std::uint16_t narrow(double x, Rounding rounding = Rounding::nearest_even) {
    if (std::isnan(x)) {
      return nan;
    }
    const std::uint32_t sign = std::signbit(x) ? 0x8000U : 0U;
    const double magnitude = std::fabs(x);
    std::uint32_t bits = infinity;
    if (std::isfinite(x)) {
      const int exponent =
          magnitude == 0 ? smallest_exponent : std::max(std::ilogb(magnitude), smallest_exponent);
      if (exponent > -smallest_exponent + 1) {
        bits = rounding == Rounding::to_zero ? infinity - 1 : infinity;
      } else {
        const double scaled = std::ldexp(magnitude, FractionBits - exponent);
        const double whole = rounding == Rounding::to_zero ? std::trunc(scaled) : std::nearbyint(scaled);
        // A fraction that rounds up to 2 carries into the exponent, up to infinity.
        bits = (static_cast<std::uint32_t>(exponent - smallest_exponent) << FractionBits) +
               static_cast<std::uint32_t>(whole);
      }
    }
    return static_cast<std::uint16_t>(sign | bits);
  }
};

struct Float16 : SmallFloat<5, 10> {
  static float widen(std::uint16_t bits) { return static_cast<float>(std::bit_cast<_Float16>(bits)); }
};

struct BFloat16 : SmallFloat<8, 7> {
  static float widen(std::uint16_t bits) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }

  /// As narrow(), for the many.
  static std::uint16_t narrow_float(float x) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t rounded = (bits + 0x7fffU + (bits >> 16 & 1)) >> 16;
    return static_cast<std::uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? nan : rounded);
  }
};

}  // namespace hcp::ptx
