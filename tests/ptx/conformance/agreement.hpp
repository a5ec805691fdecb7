/// How far two sets of results of one micro kernel are from each other.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tests/ptx/conformance/micro_kernels.hpp"

namespace hcp::ptx {

struct Agreement {
  std::string kernel;
  std::string instruction;
  std::int64_t results = 0;
  std::int64_t equal = 0;         ///< in every bit
  std::int64_t nan_payloads = 0;  ///< of the rest: both are NaN
  double largest_ulp =
      0.0;  ///< of numbers; a NaN beside a number is infinitely far, as is one word from another
  std::int64_t beyond_tolerance = 0;
  std::string first_beyond;  ///< operands and results of the first thread beyond, in hexadecimal
};

/// @param operands  [threads, kernel.operands]
/// @param expected, results  [threads, kernel.results]
[[nodiscard]] Agreement agreement_of(const MicroKernel& kernel, std::span<const std::uint32_t> operands,
                                     std::span<const std::uint32_t> expected,
                                     std::span<const std::uint32_t> results);

/// A line for each and one with the names of the columns, separated by tabs.
[[nodiscard]] std::string table_of(const std::vector<Agreement>& agreements);

}  // namespace hcp::ptx
