/// Messages between the memories of devices by MPI, for several ranks on one device and for machines whose
/// NCCL does not reach all ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/buffer.hpp"
#include "src/comm/transport.hpp"
#include "topology/mpi_environment.hpp"

namespace hcp {

namespace cuda {
class Stream;
}

/// How MPI gets at the memory of a device.
enum class DevicePath {
  pinned,  ///< copied to pinned memory of the host, chunk by chunk, so that copies and network overlap
  direct,  ///< MPI takes pointers to the device
};

/// What the MPI library says of itself and whether it is true: a message of device memory to a neighbour in
/// `everyone`. Collective; the same answer on all ranks.
struct MpiDeviceSupport {
  DevicePath path = DevicePath::pinned;
  std::string reason;  ///< why not direct; empty if it is
};
[[nodiscard]] MpiDeviceSupport probe_device_support(const MpiCommunicator& everyone, MemorySource& device);

/// Large enough that a copy and a message take much longer (80 us at 50 GB/s) than to ask for them and to see
/// that they are done, and small beside the messages that matter, whose first chunk nothing overlaps.
inline constexpr std::int64_t staged_chunk_bytes = std::int64_t{4} << 20;

/// Makes the transports of one rank. They share the host that carries their messages: whoever waits for one
/// moves those of all. Each ticket has to be finished before its transport goes, except while an exception
/// unwinds; else the program aborts. On the pinned path each message has four chunks in flight at most,
/// through pinned memory that is kept for the messages to come.
class StagedTransports {
 public:
  /// @param compute      of the rank's kernel, on the rank's device
  /// @param chunk_bytes  that travel as one message of MPI on the pinned path; the same on all ranks
  StagedTransports(std::shared_ptr<cuda::Stream> compute, DevicePath path,
                   std::int64_t chunk_bytes = staged_chunk_bytes);
  StagedTransports(const StagedTransports&) = delete;
  StagedTransports& operator=(const StagedTransports&) = delete;
  ~StagedTransports();

  /// Collective over `comm`, of which a private duplicate is made; so is its destruction, except while an
  /// exception unwinds.
  /// @param timeout_s  seconds that Ticket::wait waits for messages whose stream has come to them
  /// @throws MpiError, std::runtime_error if CUDA fails; Transport::post std::logic_error for a collective
  [[nodiscard]] std::unique_ptr<Transport> make(const MpiCommunicator& comm, double timeout_s);

 private:
  class Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace hcp
