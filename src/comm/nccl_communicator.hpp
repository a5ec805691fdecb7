/// Communicators of NCCL, owned, and their common end when one of them fails.
#pragma once

#include <nccl.h>

#include <string>
#include <vector>

#include "src/comm/peers.hpp"
#include "topology/mpi_environment.hpp"

namespace hcp {

class NcclCommunicator;

/// Those of one rank that are open. Used by one thread.
class OpenCommunicators {
 public:
  void add(NcclCommunicator& communicator) { open_.push_back(&communicator); }
  void remove(NcclCommunicator& communicator) { std::erase(open_, &communicator); }

  /// Ends what is under way on the device, on all of them at once: NCCL frees memory of the device to end
  /// one, and the device does that only when no kernel of another is waiting any more. Gives up after a
  /// second, because NCCL may wait for ranks of this host that have died; the job has to end then, not wait
  /// as well.
  /// @source NVIDIA/nccl issues 549, 863, 1013
  void abort_all() noexcept;

 private:
  std::vector<NcclCommunicator*> open_;
};

/// On the current device. Calls of NCCL wait on the host for each other's ranks (ncclConfig_t::blocking).
class NcclCommunicator {
 public:
  /// Collective over `comm`; `peers` are its ranks. @throws std::runtime_error if NCCL fails
  NcclCommunicator(const MpiCommunicator& comm, const Peers& peers, OpenCommunicators& open);
  NcclCommunicator(const NcclCommunicator&) = delete;
  NcclCommunicator& operator=(const NcclCommunicator&) = delete;
  /// Collective, and waits for what is under way; except while an exception unwinds: then all of the rank are
  /// aborted.
  ~NcclCommunicator();

  /// @throws std::runtime_error if it was aborted
  [[nodiscard]] ncclComm_t get() const;
  /// What NCCL noticed after the calls had returned, in its words; empty if nothing.
  /// @throws std::runtime_error as get()
  [[nodiscard]] std::string asynchronous_error() const;

 private:
  friend class OpenCommunicators;

  std::string name_;
  OpenCommunicators& open_;
  ncclComm_t comm_ = nullptr;
};

}  // namespace hcp
