/// The fastest loop of fp32 multiply-adds that an instruction set allows.
#pragma once

#include <cstdint>

#include "kernels/cpu/vectors.hpp"

namespace hcp::tile {

/// Independent sums: more than latency times throughput of any processor's multiply-add units (4 cycles, 2
/// per cycle), few enough to stay in registers.
inline constexpr int fma_chains = 12;

template <typename Isa>
inline constexpr std::int64_t fma_flops_per_step = 2 * fma_chains* Isa::lanes;

template <typename Isa>
float fma_loop(std::int64_t steps) {
  using Vector = Floats<Isa>;
  Vector sums[fma_chains];
  for (int i = 0; i < fma_chains; ++i) {
    sums[i] = Vector{} + static_cast<float>(i);
  }
  volatile float half = 0.5F;  // values the compiler cannot know, so that it computes every step
  volatile float one = 1.0F;
  const Vector factor = Vector{} + half;
  const Vector addend = Vector{} + one;
  for (std::int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 12
    for (int i = 0; i < fma_chains; ++i) {
      sums[i] = sums[i] * factor + addend;
    }
  }
  float total = 0.0F;
  for (int i = 0; i < fma_chains; ++i) {
    total += sums[i][0];
  }
  return total;
}

}  // namespace hcp::tile
