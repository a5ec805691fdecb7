#include "kernels/cpu/make_row_functions.hpp"
#include "kernels/cpu/row_functions.hpp"

namespace hcp {
namespace {

/// Conversions of fp16 in integers, as in kernels/data_type.cpp.
struct Isa {
  static constexpr int lanes = 4;
  static constexpr bool fused_multiply_add = false;
  using Vectors = row_arithmetic::Vectors<lanes>;
  using Floats = Vectors::Floats;
  using Words = Vectors::Words;
  using Halves = Vectors::Halves;

  [[gnu::always_inline]] static Words to_high_halves(Halves halves) {
    return __builtin_convertvector(halves, Words) << 16;
  }
  [[gnu::always_inline]] static Halves high_halves(Words words) {
    return __builtin_convertvector(words >> 16, Halves);
  }

  [[gnu::always_inline]] static Floats widen_fp16(Halves halves) {
    const Words bits = __builtin_convertvector(halves, Words);
    const Words shifted = (bits & 0x7fffU) << 13;
    // fp16's exponent bias is 15, fp32's 127. The product is exact, for numbers below fp16's normal range
    // too.
    const Words finite = (Words)((Floats)shifted * 0x1p112F);
    const Words quiet_bit = (Words)(shifted > 0x0f80'0000U) & 0x0040'0000U;  // of a NaN
    const Words magnitude = shifted >= 0x0f80'0000U ? (shifted | 0x7f80'0000U | quiet_bit) : finite;
    return (Floats)(magnitude | (bits & 0x8000U) << 16);
  }

  [[gnu::always_inline]] static Halves round_fp16(Floats values) {
    const Words bits = (Words)values;
    const Words magnitude = bits & 0x7fff'ffffU;
    // Below 2^-14 the unit of fp16 is 2^-24, which is the unit of fp32 at 0.5: the addition rounds.
    const Words below_normal = (Words)((Floats)magnitude + 0.5F) - (Words)(Floats{} + 0.5F);
    const Words normal = (magnitude - (112U << 23) + 0x0fffU + ((magnitude >> 13) & 1U)) >> 13;
    const Words quiet_nan = 0x7e00U | ((magnitude >> 13) & 0x01ffU);
    Words result = magnitude < 0x3880'0000U ? below_normal : normal;
    // From 65520 on, halfway between 65504 and 2^16.
    result = magnitude >= 0x477f'f000U ? Words{} + 0x7c00U : result;
    result = magnitude > 0x7f80'0000U ? quiet_nan : result;
    return __builtin_convertvector(result | (bits >> 16 & 0x8000U), Halves);
  }

  /// Nothing portable passes the caches.
  template <typename Packed>
  [[gnu::always_inline]] static void stream(std::byte* target, Packed packed) {
    row_arithmetic::store(target, packed);
  }
  static void finish_streaming() {}
};

constexpr RowFunctions functions = row_arithmetic::make_row_functions<Isa>("portable");

}  // namespace

const RowFunctions& portable_row_functions() {
  return functions;
}

}  // namespace hcp
