/// What the double of NCCL, a library that the program loads, leaves with the program.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace hcp::software_gpu {

/// What a rank asked of a communicator at once: a group, or a call outside of any.
struct NcclLaunch {
  std::int64_t communicator = 0;  ///< has the same number on all of its ranks
  std::string name;               ///< for messages
  std::vector<int> sends_to{};    ///< world ranks, one for each message, in order
  std::vector<int> receives_from{};
};

/// Of this rank; the mutex of the GPU guards it.
struct NcclRecord {
  std::map<std::int64_t, std::string> communicators;  ///< those that live: names by number
  std::vector<NcclLaunch> launches;                   ///< in order
  std::set<std::int64_t> aborted;                     ///< numbers of communicators
  std::map<int, std::int64_t> bytes;                  ///< sent, by world rank of the receiver
  int open_groups = 0;                                ///< begun and not ended, of all threads
};

/// Never destroyed.
[[nodiscard]] NcclRecord& nccl_record();

}  // namespace hcp::software_gpu
