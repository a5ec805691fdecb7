/// What a kernel is run on to see whether it is right: few cases, small ones first, that together reach every
/// part of it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/attention_kernel.hpp"
#include "tests/mutation/kernel_instance.hpp"

namespace hcp::mutation {

struct KernelCase {
  std::string name;
  /// Runs the case and compares with its definition in fp64, or with the host where results are exact. May be
  /// called by several threads at a time, each with a kernel of its own.
  std::function<bool(AttentionKernel& kernel)> is_right;
};

enum class Extent {
  some,
  all  ///< every head dim
};

/// @throws std::invalid_argument for a family that has no cases
[[nodiscard]] std::vector<KernelCase> cases_of(const KernelInstance& instance, Extent extent);

// One room each.
[[nodiscard]] bool is_attention(const KernelInstance& instance);
[[nodiscard]] std::vector<KernelCase> attention_cases_of(const KernelInstance& instance, Extent extent);
[[nodiscard]] std::vector<KernelCase> row_cases_of(const KernelInstance& instance);

}  // namespace hcp::mutation
