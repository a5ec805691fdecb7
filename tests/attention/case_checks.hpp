/// Everything that has to be right about a case, under MPI.
#pragma once

#include "tests/attention/attention_case.hpp"

namespace hcp {

/// Largest relative error that CaseErrors::worst may have.
[[nodiscard]] double tolerance_of(DataType type);
/// The same where gradients travel in a type of their own.
[[nodiscard]] double tolerance_of(const Problem& problem, const Setting& setting);

/// Collective. Runs the case and expects: every tensor within tolerance; the bytes and messages to each rank
/// as MPI saw them, as the transports counted them and as planned equal; no other call that moves payload;
/// peaks of memory as planned. Needs hcp_pmpi_counter in the program.
/// @returns this rank's errors
CaseErrors check_case(const Problem& problem, const Setting& setting, const Answer& answer,
                      const MpiCommunicator& comm);

}  // namespace hcp
