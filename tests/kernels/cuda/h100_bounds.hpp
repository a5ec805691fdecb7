/// A model of how fast a kernel could be on an H100 SXM at most: arithmetic on counted work, no measurement.
#pragma once

#include <string>

#include "tests/kernels/cuda/kernel_work.hpp"

namespace hcp::test {

/// Seconds on the whole device that each unit needs by itself. A kernel takes at least the largest of them,
/// and as long as that only if everything else hides behind it.
struct UnitTimes {
  double tensor = 0.0;
  double shared = 0.0;
  double issue = 0.0;  ///< 0 where the instructions are not known
  double exponentials = 0.0;

  [[nodiscard]] double bound() const;
  [[nodiscard]] std::string nearest() const;  ///< the unit of bound()
};

[[nodiscard]] UnitTimes unit_times(const KernelWork& work);

/// That fit on one multiprocessor of sm_90.
[[nodiscard]] int blocks_by_shared_memory(const BlockFacts& block);
/// @throws std::invalid_argument if the registers are not known
[[nodiscard]] int blocks_by_registers(const BlockFacts& block);

}  // namespace hcp::test
