/// What NCCL is asked for to carry a set of messages. NCCL knows no tags: what one rank sends another arrives
/// in the order in which it was asked for, so both ends have to ask in one order, and in groups that begin
/// and end at the same messages.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "src/comm/transport.hpp"

namespace hcp {

/// One ncclSend or ncclRecv of bytes.
struct NcclOperation {
  enum class Kind { send, receive };
  Kind kind = Kind::send;
  int peer = 0;
  std::span<std::byte> part;
};

/// That NCCL accepts between ncclGroupStart and ncclGroupEnd.
/// @source NCCL's user guide, ncclGroupEnd
inline constexpr int most_operations_in_a_group = 2048;

/// That one rank may send another in one set, all messages together.
inline constexpr int most_parts_to_a_peer = 8;

/// One operation per part that is not empty. By distance d, ascending: what goes to rank + d, then what comes
/// from rank - d, each by tag, then in the order of the set. A group has so many distances that it cannot
/// have more operations than NCCL accepts, whatever is sent: so every message is in the group of the same
/// number at both ends, although these know nothing of each other's sets, and no rank waits for a group that
/// another one begins only later. Groups without operations are left out.
/// @throws std::logic_error for more than most_parts_to_a_peer
[[nodiscard]] std::vector<std::vector<NcclOperation>> groups_of(const MessageSet& messages, int rank,
                                                                int size);

/// One ncclAllGather of bytes: what each rank sends, and where that of rank 0 arrives; that of the others
/// lies behind it, in the order of the ranks.
struct NcclGather {
  std::span<std::byte> part;
  std::byte* gathered = nullptr;
};

/// One per part that is not empty, of a set that is Collective::all_gather.
/// @throws std::logic_error if the set is not what Collective::all_gather says
[[nodiscard]] std::vector<NcclGather> gathers_of(const MessageSet& messages, int rank, int size);

}  // namespace hcp
