/// Messages between host memories by MPI.
#pragma once

#include <memory>

#include "src/comm/transport.hpp"
#include "topology/mpi_environment.hpp"

namespace hcp {

/// What moves large messages while the program computes.
enum class Progress {
  helper_thread,  ///< a thread of the transport, where MPI grants MPI_THREAD_MULTIPLE; else as `none`
  none,           ///< nobody: they move inside wait() only. For tests that need the contrast
};

/// Whether MPI allows the helper thread: if not, communication does not overlap computation.
[[nodiscard]] bool mpi_allows_helper_thread();

/// Collective over `comm`, of which private duplicates are made; so is its destruction, except while an
/// exception unwinds. Used by one thread.
/// @param timeout_s  seconds that Ticket::wait waits before it throws TransportTimeout
/// @throws MpiError
[[nodiscard]] std::unique_ptr<Transport> make_mpi_transport(const MpiCommunicator& comm, double timeout_s,
                                                            Progress progress = Progress::helper_thread);

}  // namespace hcp
