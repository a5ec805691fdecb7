#include "tests/software_gpu/nccl/launch.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "tests/software_gpu/gpu.hpp"
#include "tests/software_gpu/nccl/nccl_record.hpp"
#include "tests/software_gpu/nccl/nccl_world.hpp"
#include "tests/software_gpu/operation.hpp"
#include "tests/software_gpu/planted_bugs.hpp"

namespace hcp::software_gpu {
namespace {

int world_rank(const Communicator& communicator, int rank) {
  return communicator.world_ranks.at(static_cast<std::size_t>(rank));
}

/// Whether all of it is memory of the device that lives; if not, that is a finding already.
bool can_be_touched(const Messages& messages, int device) {
  const auto lives = [device](const auto& bytes) {
    return !gpu().memory.elsewhere(Place::device, device, bytes.data(), bytes.size());
  };
  return std::ranges::all_of(messages.reads, lives) && std::ranges::all_of(messages.writes, lives);
}

/// All requests to one communicator, as one operation of its stream.
class LaunchOperation {
 public:
  LaunchOperation(std::shared_ptr<Communicator> communicator, const std::vector<Request>& requests,
                  const std::string& name)
      : communicator_{std::move(communicator)}, exchange_{communicator_, name} {
    for (const Request& request : requests) {
      messages_.push_back(messages_of(request));
    }
  }

  /// As Advance. Without MPI it is never done.
  bool advance(const Operation& operation, bool first) {
    if (nccl_world() == MPI_COMM_NULL) {
      return false;
    }
    if (!communicator_->aborted) {
      if (first) {
        begin(operation);
      }
      if (!exchange_.advance()) {
        return false;
      }
      finish();
    }
    --communicator_->under_way;
    return true;
  }

 private:
  /// Reads everything before anything is poisoned, which may lie in the same place.
  void begin(const Operation& operation) {
    for (const Messages& messages : messages_) {
      for (const auto& bytes : messages.reads) {
        access(operation, bytes.data(), bytes.size(), AccessMode::read);
      }
      const bool usable = can_be_touched(messages, communicator_->device);
      if (usable && messages.begin) {
        messages.begin();
      }
      for (const Messages::Send& send : messages.sends) {
        const std::vector<std::byte> nothing(usable ? 0 : send.bytes.size());
        exchange_.send(send.end, usable ? send.bytes : std::span{nothing});
      }
      for (const MessageEnd& end : messages.receives) {
        exchange_.receive(end);
      }
    }
    for (const Messages& messages : messages_) {
      for (const auto& bytes : messages.writes) {
        access(operation, bytes.data(), bytes.size(), AccessMode::write);
        if (can_be_touched(messages, communicator_->device)) {
          poison(bytes.data(), bytes.size());
        }
      }
    }
  }

  void finish() {
    std::size_t receive = 0;
    for (const Messages& messages : messages_) {
      std::vector<std::span<const std::byte>> arrived;
      for (std::size_t i = 0; i < messages.receives.size(); ++i) {
        arrived.push_back(exchange_.arrived(receive++));
      }
      if (messages.finish && can_be_touched(messages, communicator_->device)) {
        messages.finish(arrived);
        for (const auto& bytes : messages.writes) {
          set_written(bytes.data(), bytes.size());
        }
      }
    }
  }

  std::shared_ptr<Communicator> communicator_;
  std::vector<Messages> messages_;
  Exchange exchange_;
};

std::string text_of(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) {
    text += " " + std::to_string(rank);
  }
  return text.empty() ? " none" : text;
}

/// Notes what the launch is.
NcclLaunch record(const Communicator& communicator, const std::vector<Request>& requests) {
  NcclLaunch launch{.communicator = communicator.number, .name = communicator.name};
  for (const Request& request : requests) {
    const Messages messages = messages_of(request);
    for (const Messages::Send& send : messages.sends) {
      const int to = world_rank(communicator, send.end.peer);
      launch.sends_to.push_back(to);
      nccl_record().bytes[to] += std::ssize(send.bytes);
    }
    for (const MessageEnd& end : messages.receives) {
      launch.receives_from.push_back(world_rank(communicator, end.peer));
    }
  }
  nccl_record().launches.push_back(launch);
  return launch;
}

void launch_one(const std::shared_ptr<Communicator>& communicator, std::vector<Request> requests) {
  std::ranges::stable_partition(
      requests, [](const Request& request) { return request.function != Function::point_to_point; });
  const NcclLaunch recorded = record(*communicator, requests);
  const std::string name = "launch " + std::to_string(communicator->launches++) + " of " +
                           communicator->name + " (to world ranks" + text_of(recorded.sends_to) + "; from" +
                           text_of(recorded.receives_from) + ")";
  ++communicator->under_way;
  auto launch = std::make_shared<LaunchOperation>(communicator, requests, name);
  (*gpu().streams.find(requests.front().stream))
      ->submit(name, [launch](const Operation& operation, bool first) {
        return launch->advance(operation, first);
      });
}

/// What a group asks for.
void launch_all(std::vector<Request> requests) {
  while (!requests.empty()) {
    const std::shared_ptr<Communicator> communicator = requests.front().communicator;
    const auto others = std::ranges::stable_partition(
        requests, [&](const Request& request) { return request.communicator == communicator; });
    const std::vector<Request> rest{others.begin(), others.end()};
    requests.erase(others.begin(), others.end());
    launch_one(communicator, std::move(requests));
    requests = rest;
  }
}

}  // namespace

void launch(std::vector<Request> requests) {
  static auto& late = *new std::vector<Request>;  // by a planted bug
  if (requests.empty()) {
    return;
  }
  if (has_bug(Bug::swapped_groups)) {
    late = std::move(requests);
    return;
  }
  launch_all(std::move(requests));
  std::erase_if(late, [](const Request& request) { return gpu().streams.find(request.stream) == nullptr; });
  launch_all(std::exchange(late, {}));
}

}  // namespace hcp::software_gpu
