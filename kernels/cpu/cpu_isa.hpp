/// The instruction set that the host kernel runs on.
#pragma once

#include <string_view>

#include "kernels/cpu/tile_functions.hpp"

namespace hcp {

/// What the environment variable HCP_CPU_ISA names (portable, avx2, avx512 or avx512_bf16), else the widest.
/// @throws std::invalid_argument if it names something else or what the processor lacks
[[nodiscard]] const TileFunctions& selected_tile_functions();

/// Name of the selected instruction set, as HCP_CPU_ISA spells it.
/// @throws std::invalid_argument as selected_tile_functions
[[nodiscard]] std::string_view cpu_isa_name();

}  // namespace hcp
