#include "kernels/cpu/make_tile_functions.hpp"
#include "kernels/cpu/tile_functions.hpp"

namespace hcp {
namespace {

/// Vectors of 16 bytes and 16 registers: what every 64-bit processor has.
struct Isa {
  static constexpr int lanes = 4;

  using Floats = tile::Vectors<Isa>::Floats;
  using WideWords = tile::Vectors<Isa>::WideWords;

  [[gnu::always_inline]] static Floats larger(Floats a, Floats b) { return a > b ? a : b; }

  [[gnu::always_inline]] static WideWords product_of_low_halves(WideWords a, WideWords b) {
    constexpr std::uint64_t low_half = 0xFFFF'FFFF;
    return (a & low_half) * (b & low_half);
  }
};

constexpr AttentionFunctions fp32 = tile::make_attention_functions<Isa, tile::Fp32Operands<Isa>>();
constexpr TileFunctions functions{.instruction_set = "portable",
                                  .fp32 = fp32,
                                  .bf16 = fp32,
                                  .multiplies_bf16 = false,
                                  .fma_loop = tile::fma_loop<Isa>,
                                  .fma_flops_per_step = tile::fma_flops_per_step<Isa>};

}  // namespace

const TileFunctions& portable_tile_functions() {
  return functions;
}

}  // namespace hcp
