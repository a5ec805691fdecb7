#include "tests/software_gpu/nccl/rendezvous.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "tests/software_gpu/gpu.hpp"
#include "tests/software_gpu/nccl/nccl_world.hpp"

namespace hcp::software_gpu {
namespace {

/// What an ncclUniqueId holds.
struct Id {
  std::array<char, 16> magic{};
  int maker = 0;  ///< world rank
  std::int64_t count = 0;
};
static_assert(sizeof(Id) <= NCCL_UNIQUE_ID_BYTES);
constexpr std::array<char, 16> magic{"software NCCL"};

/// From the maker of the id to a member.
struct Answer {
  ncclResult_t result = ncclSuccess;
  std::array<char, 256> reason{};
};

std::int64_t number_of(const Id& id) {
  int size = 0;
  PMPI_Comm_size(nccl_world(), &size);
  return id.count * size + id.maker;
}

template <typename Object>
bool receive_one(int source, int tag, Object& object, int* from = nullptr) {
  int found = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  PMPI_Improbe(source, tag, nccl_world(), &found, &message, &status);
  if (found == 0) {
    return false;
  }
  PMPI_Mrecv(&object, static_cast<int>(sizeof object), MPI_BYTE, &message, MPI_STATUS_IGNORE);
  if (from != nullptr) {
    *from = status.MPI_SOURCE;
  }
  return true;
}

/// Small enough for MPI to take it along at once, whether the receiver ever asks for it or not.
template <typename Object>
void send_one(int to, int tag, const Object& object) {
  PMPI_Send(&object, static_cast<int>(sizeof object), MPI_BYTE, to, tag, nccl_world());
}

std::vector<int> world_ranks_of(const std::vector<Member>& members) {
  std::vector<int> world_ranks(members.size());
  for (const Member& member : members) {
    world_ranks.at(static_cast<std::size_t>(member.rank)) = member.world_rank;
  }
  return world_ranks;
}

std::string missing_ranks(const std::vector<Member>& members, int size) {
  std::string ranks;
  for (int rank = 0; rank < size; ++rank) {
    if (std::ranges::find(members, rank, &Member::rank) == members.end()) {
      ranks += " " + std::to_string(rank);
    }
  }
  return ranks;
}

/// By whoever made the id.
Meeting receive_members(std::unique_lock<std::mutex>& lock, std::int64_t number, const Member& myself) {
  std::vector<Member> members{myself};
  const std::string stuck = gpu().engine.wait(lock, [&] {
    Member member;
    while (
        std::ssize(members) < myself.size &&
        receive_one(MPI_ANY_SOURCE, message_tag(number, MessageKind::member), member, &member.world_rank)) {
      members.push_back(member);
    }
    return std::ssize(members) == myself.size;
  });
  Meeting meeting{.communicator = number};
  if (!stuck.empty()) {
    meeting.result = ncclRemoteError;
    meeting.reason = "ranks that never came:" + missing_ranks(members, myself.size) + "; " + stuck;
  } else if (meeting.reason = fault_of(members); !meeting.reason.empty()) {
    meeting.result = ncclInvalidUsage;
  } else {
    meeting.world_ranks = world_ranks_of(members);
  }
  Answer answer{.result = meeting.result};
  meeting.reason.copy(answer.reason.data(), answer.reason.size() - 1);
  for (const Member& member : members) {
    if (member.world_rank == myself.world_rank) {
      continue;
    }
    const int tag = message_tag(number, MessageKind::answer);
    send_one(member.world_rank, tag, answer);
    if (meeting.result == ncclSuccess) {
      PMPI_Send(meeting.world_ranks.data(), myself.size, MPI_INT, member.world_rank, tag, nccl_world());
    }
  }
  return meeting;
}

Meeting receive_answer(std::unique_lock<std::mutex>& lock, int maker, std::int64_t number,
                       const Member& myself) {
  send_one(maker, message_tag(number, MessageKind::member), myself);
  Answer answer;
  const int tag = message_tag(number, MessageKind::answer);
  bool answered = false;
  const std::string stuck =
      gpu().engine.wait(lock, [&] { return answered = answered || receive_one(maker, tag, answer); });
  Meeting meeting{.communicator = number};
  if (!stuck.empty()) {
    meeting.result = ncclRemoteError;
    meeting.reason = "the rank that made the id never came; " + stuck;
    return meeting;
  }
  meeting.result = answer.result;
  meeting.reason = answer.reason.data();
  if (meeting.result == ncclSuccess) {
    meeting.world_ranks.resize(static_cast<std::size_t>(myself.size));
    PMPI_Recv(meeting.world_ranks.data(), myself.size, MPI_INT, maker, tag, nccl_world(), MPI_STATUS_IGNORE);
  }
  return meeting;
}

}  // namespace

ncclUniqueId make_unique_id() {
  static std::int64_t count = 0;
  Id id{.magic = magic, .count = count++};
  PMPI_Comm_rank(nccl_world(), &id.maker);
  ncclUniqueId unique{};
  std::memcpy(unique.internal, &id, sizeof id);
  return unique;
}

int message_tag(std::int64_t communicator, MessageKind kind) {
  constexpr int kinds = 3;
  return static_cast<int>(communicator) * kinds + static_cast<int>(kind);
}

std::string fault_of(const std::vector<Member>& members) {
  for (auto member = members.begin(); member != members.end(); ++member) {
    if (member->size != std::ssize(members)) {
      return "rank " + std::to_string(member->rank) + " says that there are " + std::to_string(member->size) +
             " ranks, rank " + std::to_string(members.front().rank) + " says " +
             std::to_string(members.size());
    }
    for (auto other = members.begin(); other != member; ++other) {
      if (other->rank == member->rank) {
        return "two ranks " + std::to_string(member->rank);
      }
      if (other->host == member->host && other->bus_id == member->bus_id) {
        return "Duplicate GPU detected : rank " + std::to_string(std::max(member->rank, other->rank)) +
               " and rank " + std::to_string(std::min(member->rank, other->rank)) + " both on CUDA device " +
               member->bus_id.data();
      }
    }
  }
  return {};
}

Meeting meet(std::unique_lock<std::mutex>& lock, const ncclUniqueId& id, const Member& myself) {
  Id content;
  std::memcpy(&content, id.internal, sizeof content);
  if (content.magic != magic) {
    return {.result = ncclInvalidArgument, .reason = "an id that ncclGetUniqueId did not make"};
  }
  static auto& used = *new std::set<std::int64_t>;
  const std::int64_t number = number_of(content);
  if (!used.insert(number).second) {
    return {.result = ncclInvalidUsage, .reason = "an id that was used before"};
  }
  return content.maker == myself.world_rank ? receive_members(lock, number, myself)
                                            : receive_answer(lock, content.maker, number, myself);
}

}  // namespace hcp::software_gpu
