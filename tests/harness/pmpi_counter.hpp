/// What this process really hands to MPI, seen between the program and the library (the PMPI profiling
/// layer). Linking hcp_pmpi_counter into a test replaces the MPI functions named in the sources.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace hcp {

struct MpiTraffic {
  std::int64_t bytes = 0;
  std::int64_t messages = 0;
  bool operator==(const MpiTraffic&) const = default;
};

struct MpiTrafficSeen {
  /// World rank of the destination -> what MPI_Send and MPI_Isend sent it, over any communicator.
  std::map<int, MpiTraffic> sent;
  /// Every other call that could move payload (collectives, persistent, buffered and one-sided
  /// communication) -> how often it was made. Empty where all traffic is meant to be in `sent`.
  std::map<std::string, std::int64_t> other_calls;
};

/// Since the start or the last reset.
[[nodiscard]] MpiTrafficSeen mpi_traffic_seen();
void reset_mpi_traffic();

/// For the wrappers of pmpi_*.cpp alone.
void count_other_call(const char* name);

}  // namespace hcp
