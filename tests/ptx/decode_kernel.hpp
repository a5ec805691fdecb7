/// From the syntax of one kernel to its instructions.
#pragma once

#include <map>
#include <string>

#include "tests/ptx/decoding.hpp"
#include "tests/ptx/kernel.hpp"
#include "tests/ptx/syntax.hpp"

namespace hcp::ptx {

/// What a kernel may name outside of itself.
struct ModuleNames {
  std::map<std::string, Symbol> variables;  ///< in constant and global memory, with their addresses
  std::map<std::string, const VariableSyntax*> shared;  ///< of the module; a kernel gets those that it names
  std::map<std::string, const FunctionSyntax*> functions;  ///< .func
};

/// Calls are replaced by the instructions of the called function, with registers of their own.
/// @throws std::invalid_argument with the line for what is not known, recursion included
[[nodiscard]] Kernel decode_kernel(const FunctionSyntax& entry, const ModuleNames& names);

}  // namespace hcp::ptx
