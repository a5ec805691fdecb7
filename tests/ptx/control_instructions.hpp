/// Results of bar.red, which its barrier knows.
#pragma once

#include <cstdint>

#include "tests/ptx/instruction.hpp"

namespace hcp::ptx {

/// @param true_threads of `threads`: those whose predicate was true
void write_barrier_reduction(Warp& warp, const Instruction& instruction, std::uint32_t true_threads,
                             std::uint32_t threads);

}  // namespace hcp::ptx
