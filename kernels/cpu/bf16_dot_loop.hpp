/// The fastest loop of bf16 dot products with fp32 sums.
#pragma once

#include <cstdint>

namespace hcp {

/// Whether the processor has the instruction (AVX512_BF16).
[[nodiscard]] bool has_bf16_dot();

/// Multiplications and additions of one step.
inline constexpr std::int64_t bf16_dot_flops_per_step = 12 * 64;

/// Runs `steps` steps in registers; only where has_bf16_dot().
/// @return a value that depends on all of them
float bf16_dot_loop(std::int64_t steps);

}  // namespace hcp
