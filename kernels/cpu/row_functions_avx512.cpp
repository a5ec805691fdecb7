#include <immintrin.h>

#include "kernels/cpu/make_row_functions.hpp"
#include "kernels/cpu/row_functions.hpp"

namespace hcp {
namespace {

/// A register of 16-bit values.
typedef std::uint16_t Halves32 __attribute__((vector_size(64)));

struct Isa {
  static constexpr int lanes = 16;
  static constexpr bool fused_multiply_add = true;
  using Vectors = row_arithmetic::Vectors<lanes>;

  [[gnu::always_inline]] static Vectors::Words to_high_halves(Vectors::Halves halves) {
    return (Vectors::Words)_mm512_maskz_cvtepu16_epi32(0xffff, (__m256i)halves) << 16;
  }
  [[gnu::always_inline]] static Vectors::Halves high_halves(Vectors::Words words) {
    constexpr Halves32 odd{1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31};
    const Halves32 gathered = __builtin_shuffle((Halves32)words, odd);
    Vectors::Halves halves;
    __builtin_memcpy(&halves, &gathered, sizeof(halves));
    return halves;
  }
  [[gnu::always_inline]] static Vectors::Floats widen_fp16(Vectors::Halves halves) {
    // All lanes: the form without a mask draws a false alarm from GCC 12 (bug 105593).
    return (Vectors::Floats)_mm512_maskz_cvtph_ps(0xffff, (__m256i)halves);
  }
  [[gnu::always_inline]] static Vectors::Halves round_fp16(Vectors::Floats values) {
    return (Vectors::Halves)_mm512_maskz_cvtps_ph(0xffff, (__m512)values,
                                                  _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  [[gnu::always_inline]] static void stream(std::byte* target, Vectors::Floats packed) {
    _mm512_stream_ps(reinterpret_cast<float*>(target), (__m512)packed);
  }
  [[gnu::always_inline]] static void stream(std::byte* target, Vectors::Halves packed) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(target), (__m256i)packed);
  }
  [[gnu::always_inline]] static void finish_streaming() { _mm_sfence(); }
};

constexpr RowFunctions functions = row_arithmetic::make_row_functions<Isa>("avx512");

}  // namespace

const RowFunctions& avx512_row_functions() {
  return functions;
}

}  // namespace hcp
