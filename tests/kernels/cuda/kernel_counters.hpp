/// What kernels do, counted by the interpreter and written down, so that a change of it does not go unseen.
#pragma once

#include <string>
#include <vector>

#include "tests/ptx/report.hpp"

namespace hcp::test {

struct KernelCounters {
  std::string kernel;    ///< its name in C++, without namespaces and parameters
  std::string work;      ///< what it was launched for
  ptx::Counters counts;  ///< of all blocks
};

/// The kernel's name of a mangled symbol.
[[nodiscard]] std::string kernel_name_of(const std::string& symbol);

/// The lines of the file, with its header.
/// @param nvcc  version of the compiler that made the kernels
[[nodiscard]] std::vector<std::string> lines_of(const std::vector<KernelCounters>& kernels,
                                                const std::string& nvcc);

/// What differs between two files' lines, each as it stands there. If they are of different compilers, only
/// what the code itself determines counts: products, bytes and bank conflicts.
[[nodiscard]] std::vector<std::string> differences(const std::vector<std::string>& stored,
                                                   const std::vector<std::string>& counted);

}  // namespace hcp::test
