/// What a kernel in PTX was made from.
#pragma once

#include <string>
#include <vector>

#include "kernels/data_type.hpp"

namespace hcp::mutation {

struct KernelInstance {
  std::string family;                  ///< the function: "forward"
  std::vector<std::string> arguments;  ///< of the template: "Bf16", "64", "64", "false"
  std::string entry;                   ///< as KernelEntry::name

  [[nodiscard]] std::string name() const;  ///< "forward<Bf16, 64, 64, false>"
  /// @throws std::out_of_range, std::invalid_argument if the argument is none of the kind
  [[nodiscard]] DataType type(std::size_t argument) const;
  [[nodiscard]] int number(std::size_t argument) const;
  [[nodiscard]] bool flag(std::size_t argument) const;
};

/// @param mangled  the name in PTX
/// @throws std::invalid_argument if it is no function of hcp::cuda
[[nodiscard]] KernelInstance instance_of(const std::string& mangled);

}  // namespace hcp::mutation
