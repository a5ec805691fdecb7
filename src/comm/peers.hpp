/// The ranks of a transport's communicator.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

#include "src/comm/transport.hpp"
#include "topology/mpi_environment.hpp"

namespace hcp {

/// What may be exchanged with them, and what they are called where something is wrong.
class Peers {
 public:
  /// Not collective. @throws MpiError
  explicit Peers(const MpiCommunicator& comm);

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return static_cast<int>(world_ranks_.size()); }
  [[nodiscard]] int world_rank_of(int rank) const { return world_ranks_[static_cast<std::size_t>(rank)]; }

  /// @throws std::logic_error for a message that is empty, to this rank itself or to no rank at all
  void check(const MessageSet& messages) const;

  /// @param status  of a receive
  /// @param peer    rank that sent it
  /// @throws std::logic_error unless so many bytes came
  void check_received(const MPI_Status& status, int peer, std::int64_t bytes, const std::string& what) const;

  /// Of a TransportTimeout.
  /// @param what       MessageSet::what
  /// @param silent     ranks that sent nothing
  /// @param not_taken  ranks that did not take what was sent to them
  [[nodiscard]] std::string timeout_text(double timeout_s, const std::string& what,
                                         const std::vector<int>& silent,
                                         const std::vector<int>& not_taken) const;

 private:
  int rank_;
  std::vector<int> world_ranks_;  ///< of the ranks of the communicator
};

}  // namespace hcp
