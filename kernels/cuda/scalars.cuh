/// Constants of kernels.
#pragma once

#include <limits>
#include <numbers>

namespace hcp::cuda {

inline constexpr float log2_e = std::numbers::log2e_v<float>;
inline constexpr float ln_2 = std::numbers::ln2_v<float>;
inline constexpr float infinity = std::numeric_limits<float>::infinity();

}  // namespace hcp::cuda
