/// The kernels of a PTX text, each as a text of its own.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hcp::mutation {

struct KernelText {
  std::string name;   ///< as nvcc mangles it
  std::string text;   ///< a whole module that holds nothing but this kernel
  int line_offset{};  ///< of a line of the kernel: that in the module minus that in `text`
};

/// In the order of the module: what stands before the first kernel (version, target, shared memory) goes into
/// every text.
/// @throws std::invalid_argument for a module with functions besides its kernels, or variables between them
[[nodiscard]] std::vector<KernelText> kernels_of(std::string_view module);

}  // namespace hcp::mutation
