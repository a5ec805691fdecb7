/// What this program was built from and with, for --version, the header of a run and the trace.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hcp {

/// Names and values, in the order in which they are printed. Needs no MPI_Init.
/// @throws std::invalid_argument as cpu_isa_name
[[nodiscard]] std::vector<std::pair<std::string, std::string>> build_info();

}  // namespace hcp
