#include "kernels/cpu/cpu_isa.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/cpu/bf16_dot_loop.hpp"

namespace hcp {
namespace {

/// What this processor can run, narrowest first.
std::vector<const TileFunctions*> supported() {
  std::vector<const TileFunctions*> sets{&portable_tile_functions()};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")) {
    sets.push_back(&avx2_tile_functions());
  }
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("fma")) {
    sets.push_back(&avx512_tile_functions());
    if (has_bf16_dot()) {
      sets.push_back(&avx512_bf16_tile_functions());
    }
  }
#endif
  return sets;
}

}  // namespace

const TileFunctions& selected_tile_functions() {
  const char* wanted = std::getenv("HCP_CPU_ISA");
  if (wanted == nullptr) {
    return *supported().back();
  }
  std::string names;
  for (const TileFunctions* set : supported()) {
    if (std::string_view{set->instruction_set} == wanted) {
      return *set;
    }
    names += (names.empty() ? "" : ", ") + std::string{set->instruction_set};
  }
  throw std::invalid_argument{"HCP_CPU_ISA is '" + std::string{wanted} + "'; this processor allows " + names};
}

std::string_view cpu_isa_name() {
  return selected_tile_functions().instruction_set;
}

}  // namespace hcp
