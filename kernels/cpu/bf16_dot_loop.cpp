#include "kernels/cpu/bf16_dot_loop.hpp"

#if defined(__AVX512BF16__)

#include <immintrin.h>

namespace hcp {

bool has_bf16_dot() {
  return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512bw");
}

float bf16_dot_loop(std::int64_t steps) {
  constexpr int chains = bf16_dot_flops_per_step / 64;
  volatile int pattern = 0x3F003F00;  // pairs of 0.5, unknown to the compiler
  const auto a = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pattern));
  __m512 sums[chains];
  for (int i = 0; i < chains; ++i) {
    sums[i] = _mm512_set1_ps(static_cast<float>(i));  // equal sums would be computed once
  }
  for (std::int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 12
    for (int i = 0; i < chains; ++i) {
      sums[i] = _mm512_dpbf16_ps(sums[i], a, a);
    }
  }
  float total = 0.0F;
  for (int i = 0; i < chains; ++i) {
    total += sums[i][0];
  }
  return total;
}

}  // namespace hcp

#else

namespace hcp {

bool has_bf16_dot() {
  return false;
}

float bf16_dot_loop(std::int64_t /*steps*/) {
  return 0.0F;
}

}  // namespace hcp

#endif
