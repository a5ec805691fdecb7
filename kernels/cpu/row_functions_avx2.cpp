#include <immintrin.h>

#include "kernels/cpu/make_row_functions.hpp"
#include "kernels/cpu/row_functions.hpp"

namespace hcp {
namespace {

struct Isa {
  static constexpr int lanes = 8;
  static constexpr bool fused_multiply_add = true;
  using Vectors = row_arithmetic::Vectors<lanes>;

  [[gnu::always_inline]] static Vectors::Words to_high_halves(Vectors::Halves halves) {
    return (Vectors::Words)_mm256_slli_epi32(_mm256_cvtepu16_epi32((__m128i)halves), 16);
  }
  [[gnu::always_inline]] static Vectors::Halves high_halves(Vectors::Words words) {
    const __m256i low = _mm256_srli_epi32((__m256i)words, 16);
    return (Vectors::Halves)_mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
  }
  [[gnu::always_inline]] static Vectors::Floats widen_fp16(Vectors::Halves halves) {
    return (Vectors::Floats)_mm256_cvtph_ps((__m128i)halves);
  }
  [[gnu::always_inline]] static Vectors::Halves round_fp16(Vectors::Floats values) {
    return (Vectors::Halves)_mm256_cvtps_ph((__m256)values, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  [[gnu::always_inline]] static void stream(std::byte* target, Vectors::Floats packed) {
    _mm256_stream_ps(reinterpret_cast<float*>(target), (__m256)packed);
  }
  [[gnu::always_inline]] static void stream(std::byte* target, Vectors::Halves packed) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(target), (__m128i)packed);
  }
  [[gnu::always_inline]] static void finish_streaming() { _mm_sfence(); }
};

constexpr RowFunctions functions = row_arithmetic::make_row_functions<Isa>("avx2");

}  // namespace

const RowFunctions& avx2_row_functions() {
  return functions;
}

}  // namespace hcp
