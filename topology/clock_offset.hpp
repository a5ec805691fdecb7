/// How far the clock of a rank is from that of rank 0.
#pragma once

#include "topology/mpi_environment.hpp"

namespace hcp {

struct ClockOffset {
  double offset_s = 0.0;       ///< this rank's clock minus rank 0's
  double uncertainty_s = 0.0;  ///< half of the shortest round trip used to measure it
};

/// Collective. Rank 0 plays ping-pong with one rank after the other; the shortest of a few round trips
/// counts.
/// @param now  the clock, in seconds
/// @source Cristian 1989, Probabilistic clock synchronization
[[nodiscard]] ClockOffset measure_clock_offset(const MpiCommunicator& comm, double (*now)());

}  // namespace hcp
