#include "src/comm/nccl_groups.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <tuple>

namespace hcp {
namespace {

using Kind = NcclOperation::Kind;

constexpr int distances_in_a_group = most_operations_in_a_group / (2 * most_parts_to_a_peer);

struct Step {
  int distance = 0;  ///< to the peer, if it is sent, or from it, from 1 on
  Kind kind = Kind::send;
  const Message* message = nullptr;
};

std::vector<Step> in_order(const MessageSet& messages, int rank, int size) {
  std::vector<Step> steps;
  for (const Message& message : messages.sends) {
    steps.push_back({(message.peer - rank + size) % size, Kind::send, &message});
  }
  for (const Message& message : messages.receives) {
    steps.push_back({(rank - message.peer + size) % size, Kind::receive, &message});
  }
  std::ranges::stable_sort(steps, {}, [](const Step& step) {
    return std::tuple{step.distance, step.kind, step.message->tag};
  });
  return steps;
}

/// Refuses what groups_of counts upon not to be.
void count_parts(std::size_t parts, const Step& step, const MessageSet& messages) {
  if (parts > most_parts_to_a_peer) {
    throw std::logic_error{std::to_string(parts) + " parts " +
                           (step.kind == Kind::send ? "to rank " : "from rank ") +
                           std::to_string(step.message->peer) + " in one set (" + messages.what +
                           "); NCCL's groups have room for " + std::to_string(most_parts_to_a_peer)};
  }
}

[[noreturn]] void refuse_gather(const std::string& why, const MessageSet& messages) {
  throw std::logic_error{"this is no all_gather: " + why + " (" + messages.what + ")"};
}

}  // namespace

std::vector<std::vector<NcclOperation>> groups_of(const MessageSet& messages, int rank, int size) {
  std::vector<std::vector<NcclOperation>> groups;
  int group_number = -1;
  Step last;
  std::size_t parts = 0;  // to or from the last one's peer
  for (const Step& step : in_order(messages, rank, size)) {
    const int number = (step.distance - 1) / distances_in_a_group;
    if (number != group_number) {
      groups.emplace_back();
      group_number = number;
    }
    parts = step.distance == last.distance && step.kind == last.kind ? parts : 0;
    for (const std::span<std::byte> part : step.message->parts) {
      if (part.empty()) continue;
      groups.back().push_back({step.kind, step.message->peer, part});
      ++parts;
    }
    count_parts(parts, step, messages);
    last = step;
  }
  return groups;
}

std::vector<NcclGather> gathers_of(const MessageSet& messages, int rank, int size) {
  const auto others = static_cast<std::size_t>(size - 1);
  if (messages.sends.size() != others || messages.receives.size() != others) {
    refuse_gather("it is not between all ranks", messages);
  }
  std::vector<NcclGather> gathers;
  if (others == 0) {
    return gathers;
  }
  const std::vector<std::span<std::byte>>& parts = messages.sends.front().parts;
  for (const Message& message : messages.sends) {
    if (!std::ranges::equal(message.parts, parts, [](const auto& a, const auto& b) {
          return a.data() == b.data() && a.size() == b.size();
        })) {
      refuse_gather("rank " + std::to_string(rank) + " does not send everybody the same", messages);
    }
  }
  for (std::size_t p = 0; p < parts.size(); ++p) {
    std::byte* gathered = nullptr;
    for (const Message& message : messages.receives) {
      if (message.parts.size() != parts.size() || message.parts[p].size() != parts[p].size()) {
        refuse_gather("rank " + std::to_string(message.peer) + " sends other sizes", messages);
      }
      std::byte* begin = message.parts[p].data() - static_cast<std::size_t>(message.peer) * parts[p].size();
      if (gathered != nullptr && begin != gathered) {
        refuse_gather("what arrives does not lie in one piece", messages);
      }
      gathered = begin;
    }
    if (!parts[p].empty()) {
      gathers.push_back({parts[p], gathered});
    }
  }
  return gathers;
}

}  // namespace hcp
