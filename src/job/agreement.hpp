/// Errors that one rank alone finds, as errors of all.
#pragma once

#include <functional>

#include "topology/mpi_environment.hpp"

namespace hcp {

/// Collective. Runs `action`, which may not communicate; if it throws std::invalid_argument on any rank,
/// every rank throws that of the lowest one, so that all leave together and nobody waits.
void agree(const MpiCommunicator& comm, const std::function<void()>& action);

}  // namespace hcp
