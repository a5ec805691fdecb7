/// Copies as operations of streams.
#pragma once

#include <cstddef>
#include <string>

#include "tests/software_gpu/operation.hpp"

namespace hcp::software_gpu {

struct CopyEnds {
  bool from_device = false;
  bool to_device = false;
};

/// For findings.
[[nodiscard]] std::string name_of_copy(CopyEnds ends, std::size_t bytes);

/// At the call: where operations are deferred, what the host sees of the copy is that of HostCopies.
/// A finding when it runs, if bytes go to the host that nobody has written.
[[nodiscard]] Advance copy_operation(CopyEnds ends, void* target, const void* source, std::size_t bytes);

}  // namespace hcp::software_gpu
