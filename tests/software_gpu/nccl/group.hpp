/// Groups of calls: ncclGroupStart to ncclGroupEnd.
#pragma once

#include <vector>

#include "tests/software_gpu/nccl/nccl_call.hpp"
#include "tests/software_gpu/nccl/request.hpp"

namespace hcp::software_gpu {

/// Of one thread. Groups in a group count as one with it.
class Group {
 public:
  void start();
  /// Launches what was asked for since the outermost start().
  [[nodiscard]] ncclResult_t end(const NcclCall& call);
  /// Launches it at once outside of a group.
  [[nodiscard]] ncclResult_t add(const NcclCall& call, Request request);
  [[nodiscard]] bool open() const { return depth_ > 0; }

 private:
  int depth_ = 0;
  std::vector<Request> requests_;
  ncclResult_t result_ = ncclSuccess;  ///< of the first call in it that failed
};

/// The calling thread's.
[[nodiscard]] Group& group();

}  // namespace hcp::software_gpu
