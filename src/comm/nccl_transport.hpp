/// Messages between the memories of devices by NCCL, in the order of streams: the host waits for none of them
/// before Ticket::finish. But two ranks connect when they first exchange something, and then post() returns
/// when both have posted it: that is in NCCL's calls, and no deadline of the transport ends it.
///
/// Nothing of it has run on hardware. On a software GPU the order of all calls, the
/// life of buffers, counts and peers were checked; not whether NCCL's kernels make progress beside each other
/// and beside attention, what is behind a failing network, and how long aborts take.
#pragma once

#include <memory>
#include <string>

#include "src/comm/transport.hpp"
#include "topology/mpi_environment.hpp"

namespace hcp {

namespace cuda {
class Stream;
}

/// What NCCL this process can load.
struct NcclSearch {
  std::string version;  ///< "2.28.9"; empty if there is none
  std::string reason;   ///< why there is none; empty if there is one
};

/// Loads it, if that was not done before. Does not throw for want of it.
[[nodiscard]] NcclSearch find_nccl();

/// "2.28.9", of the header that this program was built with; or why there was none.
[[nodiscard]] std::string nccl_build();

/// Makes the transports of one rank. They share what keeps NCCL's kernels of all levels in one order: two of
/// them at once on a device could each keep the other's peer waiting.
class NcclTransports {
 public:
  /// @param compute  of the rank's kernel, on the rank's device
  /// @param serialize_levels  each set of messages begins when the one posted before is done, whatever its
  ///        communicator. Otherwise NCCL itself keeps the order (NCCL_LAUNCH_ORDER_IMPLICIT), where it can
  /// @throws std::runtime_error with the reason if there is no NCCL
  NcclTransports(std::shared_ptr<cuda::Stream> compute, bool serialize_levels);
  NcclTransports(const NcclTransports&) = delete;
  NcclTransports& operator=(const NcclTransports&) = delete;
  ~NcclTransports();

  /// Collective over `comm`, of which no part is used later; so is the destruction of the transport, except
  /// while an exception unwinds: then what is under way is aborted, on all levels, as it is after a timeout
  /// and where NCCL fails. All ranks post their sets of all levels in one order.
  /// @param timeout_s  seconds that a set may take from when its stream has come to it
  /// @throws std::runtime_error if NCCL fails; Transport::post throws std::logic_error besides for more parts
  ///         to one peer, in all messages of a set, than nccl_groups.hpp has room for
  [[nodiscard]] std::unique_ptr<Transport> make(const MpiCommunicator& comm, double timeout_s);

  /// "in order of launch (NCCL_LAUNCH_ORDER_IMPLICIT)" or "serialized": for the header of a run.
  [[nodiscard]] std::string order() const;

 private:
  class Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace hcp
