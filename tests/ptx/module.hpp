/// The kernels of one PTX text.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/ptx/kernel.hpp"

namespace hcp::ptx {

/// A variable of a module in constant or global memory.
struct ModuleVariable {
  std::string name;
  bool writable = false;           ///< false for .const
  std::vector<std::byte> storage;  ///< zero where the text gives no value, as in CUDA
};

/// Everything in the text is decoded at once, so that what is not known is refused before anything runs.
class Module {
 public:
  /// @throws std::invalid_argument with the line for every directive, instruction or modifier that is not
  /// known
  [[nodiscard]] static Module load(std::string_view text);

  /// @param name as nvcc mangles it
  /// @throws std::invalid_argument if there is no such kernel
  [[nodiscard]] const Kernel& kernel(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> kernel_names() const;

  /// The memory of a variable, for the host to write and read. Kernels use the same addresses.
  /// @throws std::invalid_argument if there is no such variable
  [[nodiscard]] std::span<std::byte> variable(const std::string& name);
  [[nodiscard]] const std::vector<std::unique_ptr<ModuleVariable>>& variables() const { return variables_; }

 private:
  std::map<std::string, Kernel> kernels_;
  std::vector<std::unique_ptr<ModuleVariable>> variables_;  // kernels hold their addresses
};

}  // namespace hcp::ptx
