/// Problems and settings drawn from a number: any mask, shape, softmax, scheme, partition and type together.
#pragma once

#include <cstdint>

#include "tests/attention/attention_case.hpp"

namespace hcp {

struct RandomCase {
  Problem problem;
  Setting setting;
};

/// The same for the same seed and ranks. The problem is small: what matters is what meets what.
[[nodiscard]] RandomCase random_case(std::uint32_t seed, int ranks);

}  // namespace hcp
