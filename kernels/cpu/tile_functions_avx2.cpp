#include <immintrin.h>

#include "kernels/cpu/make_tile_functions.hpp"
#include "kernels/cpu/tile_functions.hpp"

namespace hcp {
namespace {

/// 16 registers: 12 sums, 2 of B, 1 broadcast of A.
struct Isa {
  static constexpr int lanes = 8;

  using Floats = tile::Vectors<Isa>::Floats;
  using WideWords = tile::Vectors<Isa>::WideWords;

  [[gnu::always_inline]] static Floats larger(Floats a, Floats b) { return _mm256_max_ps(a, b); }

  [[gnu::always_inline]] static WideWords product_of_low_halves(WideWords a, WideWords b) {
    return (WideWords)_mm256_mul_epu32((__m256i)a, (__m256i)b);
  }
};

constexpr AttentionFunctions fp32 = tile::make_attention_functions<Isa, tile::Fp32Operands<Isa>>();
constexpr TileFunctions functions{.instruction_set = "avx2",
                                  .fp32 = fp32,
                                  .bf16 = fp32,
                                  .multiplies_bf16 = false,
                                  .fma_loop = tile::fma_loop<Isa>,
                                  .fma_flops_per_step = tile::fma_flops_per_step<Isa>};

}  // namespace

const TileFunctions& avx2_tile_functions() {
  return functions;
}

}  // namespace hcp
