/// What the arithmetic units of this processor reach at best.
#pragma once

#include "kernels/data_type.hpp"

namespace hcp {

/// Floating-point operations per second of `threads` threads in loops of independent fused multiply-adds in
/// registers, with the selected instruction set; for bf16 the larger of that and of bf16 dot products, where
/// it has them. The best of many short windows, so other load lowers it little. Takes about 40 ms.
/// @throws std::invalid_argument if threads < 1
[[nodiscard]] double measured_peak_flops(DataType type, int threads);

}  // namespace hcp
