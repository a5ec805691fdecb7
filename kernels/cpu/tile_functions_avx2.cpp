#include "kernels/cpu/make_tile_functions.hpp"
#include "kernels/cpu/tile_functions.hpp"

namespace hcp {
namespace {

/// 16 registers: 12 sums, 2 of B, 1 broadcast of A.
struct Isa {
  static constexpr int lanes = 8;
  static constexpr int group = 2;
};

constexpr TileFunctions functions = tile::make_tile_functions<Isa>("avx2");

}  // namespace

const TileFunctions& avx2_tile_functions() {
  return functions;
}

}  // namespace hcp
