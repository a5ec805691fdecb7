/// Whether the launches of all ranks can wait for each other for ever.
#pragma once

#include <string>
#include <vector>

#include "tests/software_gpu/nccl/nccl_record.hpp"

namespace hcp::software_gpu {

/// NCCL's kernels keep a device's processors while they wait for their peers, so a launch may not begin
/// before the one before it on the same rank has ended, whatever their communicators and streams. A launch
/// ends when all launches with which it has a message have begun: the k-th that a rank sends another by a
/// communicator is the k-th that the other receives.
///
/// @param by_rank  the launches of each world rank, in order
/// @return launches that wait for each other in a circle (one is told), and messages with one end only
[[nodiscard]] std::vector<std::string> launch_order_findings(
    const std::vector<std::vector<NcclLaunch>>& by_rank);

}  // namespace hcp::software_gpu
