#include "tests/software_gpu/nccl/group.hpp"

#include <optional>
#include <string>
#include <utility>

#include "tests/software_gpu/gpu.hpp"
#include "tests/software_gpu/nccl/data_type.hpp"
#include "tests/software_gpu/nccl/launch.hpp"
#include "tests/software_gpu/nccl/nccl_record.hpp"

namespace hcp::software_gpu {
namespace {

/// Of calls in one group.
/// @source NCCL user guide 2.11, group calls, ncclGroupEnd
constexpr std::size_t most_requests = 2048;

bool overlap(std::span<const std::byte> a, std::span<const std::byte> b) {
  return !a.empty() && !b.empty() && a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

/// What is wrong with a request by itself.
std::optional<std::string> fault_of(const Request& request) {
  const Communicator& communicator = *request.communicator;
  if (communicator.finalized) {
    return communicator.name + " was finalized";
  }
  if (communicator.device != current_device()) {
    return communicator.name + " is of device " + std::to_string(communicator.device) +
           ", the current one is " + std::to_string(current_device());
  }
  if (bytes_of(request.type) == 0) {
    return "no type of data";
  }
  if (request.bytes == 0) {
    return "a message without a byte";
  }
  if (request.peer < 0 || request.peer >= communicator.size()) {
    return "rank " + std::to_string(request.peer) + " of " + std::to_string(communicator.size());
  }
  if (request.function == Function::point_to_point && request.peer == communicator.rank) {
    return "a message of rank " + std::to_string(request.peer) + " to itself";
  }
  const bool reduces =
      request.function == Function::reduce_scatter || request.function == Function::all_reduce;
  if (reduces && !can_add(request.type)) {
    return "the double adds float32 and float64 only, not " + std::string{name_of(request.type)};
  }
  for (const std::span<const std::byte> buffer :
       {source_of(request), std::span<const std::byte>{target_of(request)}}) {
    if (const auto fault =
            gpu().memory.elsewhere(Place::device, communicator.device, buffer.data(), buffer.size());
        fault && !buffer.empty()) {
      return "a buffer should be " + name_of(Place::device) + " but " + *fault;
    }
  }
  return std::nullopt;
}

/// What is wrong with its stream.
std::optional<std::string> stream_fault_of(const Request& request, const std::vector<Request>& group) {
  Communicator& communicator = *request.communicator;
  const std::shared_ptr<Stream>* stream = gpu().streams.find(request.stream);
  if (stream == nullptr) {
    return "the default stream, or one that does not exist";
  }
  if ((*stream)->device() != communicator.device) {
    return communicator.name + " is of device " + std::to_string(communicator.device) + ", the stream of " +
           std::to_string((*stream)->device());
  }
  for (const Request& other : group) {
    if (other.communicator == request.communicator && other.stream != request.stream) {
      return "a group with several streams for " + communicator.name;
    }
  }
  if (communicator.stream != nullptr && communicator.stream != request.stream) {
    return communicator.name + " had another stream so far";
  }
  return std::nullopt;
}

/// All requests of a group are under way at the same time.
std::optional<std::string> overlap_of(const Request& request, const std::vector<Request>& group) {
  for (const Request& other : group) {
    if (overlap(target_of(request), target_of(other)) || overlap(target_of(request), source_of(other)) ||
        overlap(source_of(request), target_of(other))) {
      return "a buffer that another call of the group receives in or sends while it is received in";
    }
  }
  return std::nullopt;
}

}  // namespace

void Group::start() {
  ++depth_;
  ++nccl_record().open_groups;
}

ncclResult_t Group::end(const NcclCall& call) {
  if (depth_ == 0) {
    return call.misuse(ncclInvalidUsage, "no group was begun");
  }
  --nccl_record().open_groups;
  if (--depth_ > 0) {
    return call.done();
  }
  if (requests_.size() > most_requests) {
    result_ = call.misuse(ncclInvalidUsage, std::to_string(requests_.size()) + " calls in a group, not " +
                                                std::to_string(most_requests) + " or fewer");
  }
  std::vector<Request> requests = std::exchange(requests_, {});
  if (const ncclResult_t result = std::exchange(result_, ncclSuccess); result != ncclSuccess) {
    return result;
  }
  launch(std::move(requests));
  return call.done();
}

ncclResult_t Group::add(const NcclCall& call, Request request) {
  for (const auto& fault :
       {fault_of(request), stream_fault_of(request, requests_), overlap_of(request, requests_)}) {
    if (fault) {
      result_ = depth_ > 0 ? ncclInvalidArgument : result_;
      return call.misuse(ncclInvalidArgument, *fault);
    }
  }
  request.communicator->stream = request.stream;
  requests_.push_back(std::move(request));
  if (depth_ == 0) {
    launch(std::exchange(requests_, {}));
  }
  return call.done();
}

Group& group() {
  thread_local Group instance;
  return instance;
}

}  // namespace hcp::software_gpu
