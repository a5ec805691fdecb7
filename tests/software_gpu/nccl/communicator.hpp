/// The communicators of this rank.
#pragma once

#include <nccl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/software_gpu/handle_table.hpp"

namespace hcp::software_gpu {

struct Communicator {
  std::int64_t number = 0;  ///< the same on all of its ranks, of no other communicator
  std::string name;
  int rank = 0;
  std::vector<int> world_ranks;  ///< by rank
  int device = 0;
  cudaStream_t stream = nullptr;  ///< of its first launch
  std::int64_t launches = 0;
  int under_way = 0;  ///< launches that are not done
  bool finalized = false;
  bool aborted = false;

  [[nodiscard]] int size() const { return static_cast<int>(world_ranks.size()); }
};

/// Launches keep theirs alive.
using Communicators = HandleTable<ncclComm_t, std::shared_ptr<Communicator>>;

/// Never destroyed; the mutex of the GPU guards it.
[[nodiscard]] Communicators& communicators();

}  // namespace hcp::software_gpu
