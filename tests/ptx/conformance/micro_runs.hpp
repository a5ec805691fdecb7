/// Micro kernels, run: the same operands on both sides give results to compare.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tests/ptx/conformance/micro_kernels.hpp"

namespace hcp::ptx {

inline constexpr int warp_threads = 32;  ///< of every block; threads of a run are a multiple

/// Both take operands [threads, kernel.operands] and return results [threads, kernel.results].
/// @throws std::runtime_error with the first finding of the interpreter's checks
[[nodiscard]] std::vector<std::uint32_t> run_on_interpreter(const MicroKernel& kernel,
                                                            std::span<const std::uint32_t> operands);
/// On device 0. @throws std::runtime_error with the words of CUDA
[[nodiscard]] std::vector<std::uint32_t> run_on_device(const MicroKernel& kernel,
                                                       std::span<const std::uint32_t> operands);

}  // namespace hcp::ptx
