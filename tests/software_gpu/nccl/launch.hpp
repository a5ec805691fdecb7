/// Requests become operations of streams.
#pragma once

#include <vector>

#include "tests/software_gpu/nccl/request.hpp"

namespace hcp::software_gpu {

/// What a group, or one call outside of any, asks for: one launch for each communicator, in the order in
/// which the group first names them. As in NCCL, the collectives of a launch come before its other messages.
void launch(std::vector<Request> requests);

}  // namespace hcp::software_gpu
