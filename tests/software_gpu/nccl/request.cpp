#include "tests/software_gpu/nccl/request.hpp"

#include <algorithm>
#include <cstdint>

#include "tests/software_gpu/nccl/data_type.hpp"

namespace hcp::software_gpu {
namespace {

using Arrived = std::vector<std::span<const std::byte>>;

std::size_t parts(const Communicator& communicator, bool all) {
  return all ? communicator.world_ranks.size() : 1;
}

MessageEnd end_of(const Request& request, int peer) {
  return {.peer = peer, .bytes = request.bytes, .type = request.type, .function = request.function};
}

std::span<std::byte> part_of(std::span<std::byte> all, const Request& request, int rank) {
  return all.subspan(static_cast<std::size_t>(rank) * request.bytes, request.bytes);
}

Messages point_to_point(const Request& request) {
  Messages messages;
  if (request.source != nullptr) {
    messages.reads = {source_of(request)};
    messages.sends = {{end_of(request, request.peer), source_of(request)}};
  } else {
    messages.writes = {target_of(request)};
    messages.receives = {end_of(request, request.peer)};
    messages.finish = [target = target_of(request)](const Arrived& arrived) {
      std::ranges::copy(arrived.front(), target.begin());
    };
  }
  return messages;
}

/// With whom a collective has messages.
std::vector<int> peers_of(const Communicator& communicator) {
  std::vector<int> peers;
  for (int rank = 0; rank < communicator.size(); ++rank) {
    if (rank != communicator.rank) {
      peers.push_back(rank);
    }
  }
  return peers;
}

/// Calls `use` with the part of each rank in their order; `mine` is this rank's.
void for_each_part(const Communicator& communicator, const Arrived& arrived, std::span<const std::byte> mine,
                   const std::function<void(int rank, std::span<const std::byte> part)>& use) {
  auto next = arrived.begin();
  for (int rank = 0; rank < communicator.size(); ++rank) {
    use(rank, rank == communicator.rank ? mine : *next++);
  }
}

/// A copy of this rank's own part, taken when the request begins.
using Kept = std::shared_ptr<std::vector<std::byte>>;

Kept keep(Messages& messages, std::span<const std::byte> part) {
  auto kept = std::make_shared<std::vector<std::byte>>();
  messages.begin = [kept, part] { kept->assign(part.begin(), part.end()); };
  return kept;
}

Messages all_gather(const Request& request) {
  Messages messages;
  const Communicator& communicator = *request.communicator;
  for (const int peer : peers_of(communicator)) {
    messages.sends.push_back({end_of(request, peer), source_of(request)});
    messages.receives.push_back(end_of(request, peer));
    messages.writes.push_back(part_of(target_of(request), request, peer));
  }
  messages.reads = {source_of(request)};
  if (const auto own = part_of(target_of(request), request, communicator.rank);
      own.data() != request.source) {
    messages.writes.push_back(own);
  }
  messages.finish = [request, kept = keep(messages, source_of(request))](const Arrived& arrived) {
    for_each_part(*request.communicator, arrived, *kept, [&](int rank, std::span<const std::byte> part) {
      std::ranges::copy(part, part_of(target_of(request), request, rank).begin());
    });
  };
  return messages;
}

/// In the order of the ranks: NCCL's own order depends on the machine.
void sum_up(const Request& request, const Arrived& arrived, std::span<const std::byte> mine) {
  const std::span<std::byte> target = target_of(request);
  for_each_part(*request.communicator, arrived, mine, [&](int rank, std::span<const std::byte> part) {
    if (rank == 0) {
      std::ranges::copy(part, target.begin());
    } else {
      add(request.type, target, part);
    }
  });
}

Messages reduce(const Request& request) {
  Messages messages;
  const auto part_for = [&](int rank) {
    const std::span<const std::byte> source = source_of(request);
    return request.function == Function::all_reduce
               ? source
               : source.subspan(static_cast<std::size_t>(rank) * request.bytes, request.bytes);
  };
  for (const int peer : peers_of(*request.communicator)) {
    messages.sends.push_back({end_of(request, peer), part_for(peer)});
    messages.receives.push_back(end_of(request, peer));
  }
  messages.reads = {source_of(request)};
  messages.writes = {target_of(request)};
  messages.finish = [request, kept = keep(messages, part_for(request.communicator->rank))](
                        const Arrived& arrived) { sum_up(request, arrived, *kept); };
  return messages;
}

Messages broadcast(const Request& request) {
  Messages messages;
  if (request.communicator->rank != request.peer) {
    messages.writes = {target_of(request)};
    messages.receives = {end_of(request, request.peer)};
    messages.finish = [request](const Arrived& arrived) {
      std::ranges::copy(arrived.front(), target_of(request).begin());
    };
    return messages;
  }
  messages.reads = {source_of(request)};
  for (const int peer : peers_of(*request.communicator)) {
    messages.sends.push_back({end_of(request, peer), source_of(request)});
  }
  if (request.target != request.source) {
    messages.writes = {target_of(request)};
    messages.finish = [request, kept = keep(messages, source_of(request))](const Arrived& /*arrived*/) {
      std::ranges::copy(*kept, target_of(request).begin());
    };
  }
  return messages;
}

}  // namespace

std::span<const std::byte> source_of(const Request& request) {
  const bool of_all = request.function == Function::reduce_scatter;
  const bool none = request.function == Function::broadcast && request.communicator->rank != request.peer;
  return request.source == nullptr || none
             ? std::span<const std::byte>{}
             : std::span{request.source, request.bytes * parts(*request.communicator, of_all)};
}

std::span<std::byte> target_of(const Request& request) {
  const bool of_all = request.function == Function::all_gather;
  return request.target == nullptr
             ? std::span<std::byte>{}
             : std::span{request.target, request.bytes * parts(*request.communicator, of_all)};
}

Messages messages_of(const Request& request) {
  switch (request.function) {
    case Function::point_to_point:
      return point_to_point(request);
    case Function::all_gather:
      return all_gather(request);
    case Function::reduce_scatter:
    case Function::all_reduce:
      return reduce(request);
    case Function::broadcast:
      break;
  }
  return broadcast(request);
}

}  // namespace hcp::software_gpu
