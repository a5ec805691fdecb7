/// Mutants that are no faults: whatever the arguments, the kernel does what it did.
#pragma once

#include <string_view>

#include "tests/mutation/kernel_instance.hpp"
#include "tests/mutation/ptx_mutants.hpp"

namespace hcp::mutation {

/// Why a mutant is none, "" if it is one. A case that notices such a mutant refutes the reason.
[[nodiscard]] std::string_view reason_for_equivalence(const KernelInstance& instance, const Mutant& mutant);

}  // namespace hcp::mutation
