/// The frame of every call of NCCL's double.
///
/// The double is a library of NCCL's name that programs with a software GPU load. It carries messages between
/// ranks by MPI, as operations of the software GPU's streams, and says what is wrong with calls: alone, with
/// those of the other ranks, and with the order of all. Receives are NaN from when they begin until all of a
/// group has arrived.
///
/// What it is not: it knows nothing of NCCL's own limits of progress and of the network, so that programs
/// that pass may still wait for ever where launches need more of a device than is free; communicators are
/// blocking ones, made outside of groups and by whoever made their id; sums are those of float32 and float64.
#pragma once

#include <nccl.h>

#include <memory>
#include <mutex>
#include <string>

#include "tests/software_gpu/nccl/communicator.hpp"

namespace hcp::software_gpu {

/// Each call ends with one of its functions for what it returns.
class NcclCall {
 public:
  explicit NcclCall(const char* name);

  [[nodiscard]] ncclResult_t done() const { return ncclSuccess; }
  /// NCCL would say so as well; the caller is not to blame.
  [[nodiscard]] ncclResult_t fail(ncclResult_t result, const std::string& what) const;
  /// What NCCL would at best refuse.
  [[nodiscard]] ncclResult_t misuse(ncclResult_t result, const std::string& what) const;

  /// nullptr, and a misuse, if the handle is that of no communicator that lives.
  [[nodiscard]] std::shared_ptr<Communicator> communicator(ncclComm_t handle) const;

  /// Lets streams go on until none of the communicator's launches is under way.
  /// @return ncclSuccess, or another result and a finding if nothing happened for too long
  [[nodiscard]] ncclResult_t wait_for(const Communicator& communicator);

  /// Of the GPU.
  [[nodiscard]] std::unique_lock<std::mutex>& lock() { return lock_; }

 private:
  std::string name_;
  std::unique_lock<std::mutex> lock_;
};

/// Of the last call that ended with an error; empty before.
[[nodiscard]] const char* last_nccl_error();

}  // namespace hcp::software_gpu
