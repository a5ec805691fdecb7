#include <immintrin.h>

#include "kernels/cpu/make_tile_functions.hpp"
#include "kernels/cpu/tile_functions.hpp"

namespace hcp {
namespace {

/// As AVX-512; a dot product of two pairs takes the place of a multiply-add.
struct Isa {
  static constexpr int lanes = 16;

  using Floats = tile::Vectors<Isa>::Floats;
  using Words = tile::Vectors<Isa>::Words;
  using WideWords = tile::Vectors<Isa>::WideWords;

  [[gnu::always_inline]] static Floats larger(Floats a, Floats b) {
    return _mm512_mask_max_ps(a, 0xFFFF, a, b);
  }
  [[gnu::always_inline]] static WideWords product_of_low_halves(WideWords a, WideWords b) {
    return (WideWords)_mm512_maskz_mul_epu32(0xFF, (__m512i)a, (__m512i)b);
  }

  [[gnu::always_inline]] static Floats dot(Floats sum, Words a, Words b) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
  [[gnu::always_inline]] static Words narrow(Floats low, Floats high) {
    return reinterpret_cast<Words>(_mm512_cvtne2ps_pbh(high, low));
  }
  [[gnu::always_inline]] static Words pair(Floats even, Floats odd) {
    const auto low = reinterpret_cast<Words>(_mm512_cvtne2ps_pbh(odd, even));
    return reinterpret_cast<Words>(_mm512_permutexvar_epi16(interleaved(), reinterpret_cast<__m512i>(low)));
  }

 private:
  /// 16-bit elements 0, 16, 1, 17, ...
  [[gnu::always_inline]] static __m512i interleaved() {
    const auto even = (Words)tile::lane_numbers<Isa>();
    return reinterpret_cast<__m512i>(even | (even + 16U) << 16);
  }
};

constexpr TileFunctions functions{.instruction_set = "avx512_bf16",
                                  .fp32 = tile::make_attention_functions<Isa, tile::Fp32Operands<Isa>>(),
                                  .bf16 = tile::make_attention_functions<Isa, tile::Bf16Operands<Isa>>(),
                                  .multiplies_bf16 = true,
                                  .fma_loop = tile::fma_loop<Isa>,
                                  .fma_flops_per_step = tile::fma_flops_per_step<Isa>};

}  // namespace

const TileFunctions& avx512_bf16_tile_functions() {
  return functions;
}

}  // namespace hcp
