/// Messages between the memories of devices by MPI, for several ranks on one device and for machines whose
/// NCCL does not reach all ranks.
#pragma once

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

/// Makes the transports of one rank. They share the host that carries their messages: whoever waits for one
/// moves those of all.
class StagedTransports {
 public:
  /// @param compute  of the rank's kernel, on the rank's device
  StagedTransports(std::shared_ptr<cuda::Stream> compute, DevicePath path);
  StagedTransports(const StagedTransports&) = delete;
  StagedTransports& operator=(const StagedTransports&) = delete;
  ~StagedTransports();

  /// Collective over `comm`, of which a private duplicate is made; so is its destruction, except while an
  /// exception unwinds.
  /// @param timeout_s  seconds that Ticket::wait waits for messages whose stream has come to them
  /// @throws MpiError, std::runtime_error if CUDA fails
  [[nodiscard]] std::unique_ptr<Transport> make(const MpiCommunicator& comm, double timeout_s);

 private:
  class Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace hcp
