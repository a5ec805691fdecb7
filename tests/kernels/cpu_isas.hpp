/// Instruction sets of the host kernel that this processor has.
#pragma once

#include <string>
#include <vector>

#include "kernels/data_type.hpp"

namespace hcp::test {

/// Makes HCP_CPU_ISA `name` while it lives.
class SelectedIsa {
 public:
  explicit SelectedIsa(const std::string& name);
  SelectedIsa(const SelectedIsa&) = delete;
  SelectedIsa& operator=(const SelectedIsa&) = delete;
  ~SelectedIsa();
};

[[nodiscard]] std::vector<std::string> available_isas();

/// Largest relative error of a result of a kernel against the exact one from the same operands. Storage is
/// exact for the reference: so that is the error of fp32 sums, and of P and dS rounded to bf16 where bf16
/// values are multiplied as such.
[[nodiscard]] double kernel_tolerance(const std::string& isa, DataType type);

}  // namespace hcp::test
