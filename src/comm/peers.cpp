#include "src/comm/peers.hpp"

#include <numeric>
#include <sstream>
#include <stdexcept>

namespace hcp {
namespace {

std::vector<int> world_ranks_of(MPI_Comm comm, int size) {
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Group world = MPI_GROUP_NULL;
  check_mpi(MPI_Comm_group(comm, &group), "MPI_Comm_group");
  check_mpi(MPI_Comm_group(MPI_COMM_WORLD, &world), "MPI_Comm_group");
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<int> world_ranks(ranks.size());
  check_mpi(MPI_Group_translate_ranks(group, size, ranks.data(), world, world_ranks.data()),
            "MPI_Group_translate_ranks");
  check_mpi(MPI_Group_free(&group), "MPI_Group_free");
  check_mpi(MPI_Group_free(&world), "MPI_Group_free");
  return world_ranks;
}

}  // namespace

Peers::Peers(const MpiCommunicator& comm)
    : rank_{comm.rank()}, world_ranks_{world_ranks_of(comm.get(), comm.size())} {}

void Peers::check(const MessageSet& messages) const {
  for (const std::vector<Message>* list : {&messages.receives, &messages.sends}) {
    for (const Message& message : *list) {
      if (message.peer < 0 || message.peer >= size() || message.peer == rank_ || message.bytes() == 0) {
        throw std::logic_error{"rank " + std::to_string(rank_) + " of " + std::to_string(size()) +
                               " was told to exchange " + std::to_string(message.bytes()) + " B with rank " +
                               std::to_string(message.peer) + " (" + messages.what + ")"};
      }
    }
  }
}

void Peers::check_received(const MPI_Status& status, int peer, std::int64_t bytes,
                           const std::string& what) const {
  MPI_Count received = 0;
  check_mpi(MPI_Get_elements_x(&status, MPI_BYTE, &received), "MPI_Get_elements_x");
  if (received != bytes) {
    throw std::logic_error{"world rank " + std::to_string(world_rank_of(rank_)) + " received " +
                           std::to_string(received) + " B instead of " + std::to_string(bytes) +
                           " B from world rank " + std::to_string(world_rank_of(peer)) + " (" + what + ")"};
  }
}

std::string Peers::timeout_text(double timeout_s, const std::string& what, const std::vector<int>& silent,
                                const std::vector<int>& not_taken) const {
  std::ostringstream text;
  text << "world rank " << world_rank_of(rank_) << " waited " << timeout_s << " s";
  if (!what.empty()) text << " in " << what;
  const auto list = [&](const char* lead, const std::vector<int>& ranks) {
    const char* separator = lead;
    for (const int rank : ranks) {
      text << separator << ' ' << world_rank_of(rank);
      separator = ",";
    }
  };
  list("; nothing yet from world rank", silent);
  list("; not yet taken by world rank", not_taken);
  return text.str();
}

}  // namespace hcp
