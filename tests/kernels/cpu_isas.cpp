#include "tests/kernels/cpu_isas.hpp"

#include <cstdlib>
#include <stdexcept>

#include "kernels/cpu/cpu_isa.hpp"

namespace hcp::test {

SelectedIsa::SelectedIsa(const std::string& name) {
  setenv("HCP_CPU_ISA", name.c_str(), 1);
}

SelectedIsa::~SelectedIsa() {
  unsetenv("HCP_CPU_ISA");
}

std::vector<std::string> available_isas() {
  std::vector<std::string> names;
  for (const std::string name : {"portable", "avx2", "avx512", "avx512_bf16"}) {
    const SelectedIsa selected{name};
    try {
      if (cpu_isa_name() == name) {
        names.push_back(name);
      }
    } catch (const std::invalid_argument&) {
      // not on this processor
    }
  }
  return names;
}

double kernel_tolerance(const std::string& isa, DataType type) {
  return isa == "avx512_bf16" && type == DataType::bf16 ? 3e-3 : 2e-6;
}

}  // namespace hcp::test
