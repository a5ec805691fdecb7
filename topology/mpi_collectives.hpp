/// The few collectives that set-up, verification and the trace need; never the exchange of a step.
///
/// Every function is collective over the communicator and throws MpiError if MPI fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topology/mpi_environment.hpp"

namespace hcp {

void barrier(const MpiCommunicator& comm);

enum class Reduction { sum, min, max };

/// Element by element over the ranks, in place; all ranks give equally many values.
void all_reduce(const MpiCommunicator& comm, Reduction reduction, std::span<double> values);
void all_reduce(const MpiCommunicator& comm, Reduction reduction, std::span<std::int64_t> values);
[[nodiscard]] double all_reduce(const MpiCommunicator& comm, Reduction reduction, double value);
[[nodiscard]] std::int64_t all_reduce(const MpiCommunicator& comm, Reduction reduction, std::int64_t value);

/// What each rank gave, by rank; lengths may differ. On ranks other than `root` the answer is empty.
/// @throws std::length_error on every rank if all of it together is 2 GiB or more
[[nodiscard]] std::vector<std::vector<double>> gather(const MpiCommunicator& comm,
                                                      std::span<const double> mine, int root);
[[nodiscard]] std::vector<std::vector<std::byte>> gather(const MpiCommunicator& comm,
                                                         std::span<const std::byte> mine, int root);

/// The same on every rank.
/// @throws std::length_error on every rank if all of it together is 2 GiB or more
[[nodiscard]] std::vector<std::vector<double>> all_gather(const MpiCommunicator& comm,
                                                          std::span<const double> mine);
[[nodiscard]] std::vector<std::vector<std::byte>> all_gather(const MpiCommunicator& comm,
                                                             std::span<const std::byte> mine);
[[nodiscard]] std::vector<std::string> all_gather(const MpiCommunicator& comm, std::string_view mine);

/// The text that `root` gave; the other ranks' texts are ignored.
[[nodiscard]] std::string broadcast(const MpiCommunicator& comm, std::string_view text, int root);

}  // namespace hcp
