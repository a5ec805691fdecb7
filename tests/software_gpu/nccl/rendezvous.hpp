/// How the ranks of a communicator find each other.
#pragma once

#include <nccl.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace hcp::software_gpu {

/// @return another at each call, on all ranks
[[nodiscard]] ncclUniqueId make_unique_id();

/// Tags of a communicator's messages in nccl_world().
enum class MessageKind : std::uint8_t { member, answer, data };
[[nodiscard]] int message_tag(std::int64_t communicator, MessageKind kind);

/// What a rank tells of itself.
struct Member {
  int world_rank = 0;
  int rank = 0;
  int size = 0;    ///< of the communicator, as the rank has it
  int device = 0;  ///< as the rank counts them
  std::array<char, 64> host{};
  std::array<char, 16> bus_id{};
};

/// Why they cannot be one communicator; empty if they can. Two with one device are told of in NCCL's words.
[[nodiscard]] std::string fault_of(const std::vector<Member>& members);

struct Meeting {
  std::int64_t communicator = 0;   ///< number
  std::vector<int> world_ranks{};  ///< by rank; empty if the communicator cannot be
  ncclResult_t result = ncclSuccess;
  std::string reason{};  ///< of another result
};

/// Returns when all ranks have come, or the GPU's patience is at its end; meanwhile streams go on. Whoever
/// made the id has to be one of the ranks.
/// @param lock  of the GPU, held
[[nodiscard]] Meeting meet(std::unique_lock<std::mutex>& lock, const ncclUniqueId& id, const Member& myself);

}  // namespace hcp::software_gpu
