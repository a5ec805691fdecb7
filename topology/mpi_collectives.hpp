/// The few collectives that set-up, verification and the trace need; never the exchange of a step.
///
/// Every function is collective over the communicator and throws MpiError if MPI fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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

/// Hands rank 0 what each rank gave, rank by rank and in order, in pieces: rank 0 needs memory for one piece,
/// however many ranks there are and however much they give.
/// @param piece_bytes  of every piece of a rank but its last one, which may be shorter; the same on all ranks
/// @param at_root      called on rank 0 alone, with the rank that gave the piece; it may not communicate. Not
///                     called for a rank that gave nothing
/// @throws std::invalid_argument unless piece_bytes is from 1 to 2^31 - 1
void visit_by_rank(const MpiCommunicator& comm, std::span<const std::byte> mine, std::int64_t piece_bytes,
                   const std::function<void(int rank, std::span<const std::byte> piece)>& at_root);

/// What each rank gave, by rank, on every rank; lengths may differ.
/// @throws std::length_error on every rank if all of it together is 2 GiB or more
[[nodiscard]] std::vector<std::vector<double>> all_gather(const MpiCommunicator& comm,
                                                          std::span<const double> mine);
[[nodiscard]] std::vector<std::vector<std::byte>> all_gather(const MpiCommunicator& comm,
                                                             std::span<const std::byte> mine);
[[nodiscard]] std::vector<std::string> all_gather(const MpiCommunicator& comm, std::string_view mine);

/// The text that `root` gave; the other ranks' texts are ignored.
[[nodiscard]] std::string broadcast(const MpiCommunicator& comm, std::string_view text, int root);

}  // namespace hcp
