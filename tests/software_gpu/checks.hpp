/// Whether accesses to memory are ordered.
#pragma once

#include <cstddef>

#include "tests/software_gpu/clock.hpp"
#include "tests/software_gpu/operation.hpp"

namespace hcp::software_gpu {

/// Notes the access. A finding, if an earlier one is not ordered before it (one of the two a write). Nothing,
/// where no operation is deferred.
void check_order(const Operation& operation, const void* begin, std::size_t bytes, AccessMode mode);

/// The host frees this memory. A finding, if the clock does not cover all that has touched it.
void check_unused(const Clock& known, const void* begin, std::size_t bytes);

}  // namespace hcp::software_gpu
