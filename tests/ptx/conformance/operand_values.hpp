/// Operands of micro kernels.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/ptx/conformance/micro_kernels.hpp"

namespace hcp::ptx {

/// Random, and the same for the same kernel everywhere.
/// @return [threads, operands]
[[nodiscard]] std::vector<std::uint32_t> operands_of(const MicroKernel& kernel, int threads);

}  // namespace hcp::ptx
