#include "kernels/cpu/make_tile_functions.hpp"
#include "kernels/cpu/tile_functions.hpp"

namespace hcp {
namespace {

/// Vectors of 16 bytes and 16 registers: what every 64-bit processor has.
struct Isa {
  static constexpr int lanes = 4;
  static constexpr int group = 2;
};

constexpr TileFunctions functions = tile::make_tile_functions<Isa>("portable");

}  // namespace

const TileFunctions& portable_tile_functions() {
  return functions;
}

}  // namespace hcp
