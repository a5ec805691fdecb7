#include "kernels/cpu/make_tile_functions.hpp"
#include "kernels/cpu/tile_functions.hpp"

namespace hcp {
namespace {

/// 32 registers: 24 sums, 2 of B; A is broadcast by the multiply-add itself.
struct Isa {
  static constexpr int lanes = 16;
  static constexpr int group = 4;
};

constexpr TileFunctions functions = tile::make_tile_functions<Isa>("avx512");

}  // namespace

const TileFunctions& avx512_tile_functions() {
  return functions;
}

}  // namespace hcp
