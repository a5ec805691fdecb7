// Entry points of NCCL: groups, messages, collectives.

#include <nccl.h>

#include <memory>
#include <utility>

#include "tests/software_gpu/gpu.hpp"
#include "tests/software_gpu/nccl/data_type.hpp"
#include "tests/software_gpu/nccl/group.hpp"
#include "tests/software_gpu/nccl/nccl_call.hpp"
#include "tests/software_gpu/planted_bugs.hpp"

namespace {

using namespace hcp::software_gpu;  // NOLINT: NCCL's functions are in no namespace

/// Of the same device; the same if it has no other.
cudaStream_t other_stream(cudaStream_t stream) {
  const std::shared_ptr<Stream>* mine = gpu().streams.find(stream);
  const cudaStream_t other =
      gpu().streams.find_where([&](cudaStream_t handle, const std::shared_ptr<Stream>& candidate) {
        return mine != nullptr && handle != stream && candidate->device() == (*mine)->device();
      });
  return other == nullptr ? stream : other;
}

/// As the program would have asked with a bug that is planted here.
Request with_bugs(Request request, std::size_t count) {
  if (request.function == Function::point_to_point && has_bug(Bug::wrong_peer)) {
    request.peer = (request.peer + 1) % request.communicator->size();
  }
  if (has_bug(Bug::half_count)) {
    request.bytes = count / 2 * bytes_of(request.type);
  }
  if (has_bug(Bug::two_streams)) {
    request.stream = other_stream(request.stream);
  }
  return request;
}

/// @param request  without its communicator and its bytes
ncclResult_t ask(const char* name, ncclComm_t handle, std::size_t count, Request request) {
  const NcclCall call{name};
  request.communicator = call.communicator(handle);
  if (request.communicator == nullptr) {
    return ncclInvalidArgument;
  }
  request.bytes = count * bytes_of(request.type);
  return group().add(call, with_bugs(std::move(request), count));
}

/// Of a collective that reduces.
ncclResult_t ask_sum(const char* name, ncclComm_t handle, std::size_t count, ncclRedOp_t reduction,
                     Request request) {
  if (reduction != ncclSum) {
    return NcclCall{name}.misuse(ncclInvalidArgument, "the double knows sums only");
  }
  return ask(name, handle, count, std::move(request));
}

}  // namespace

extern "C" {

ncclResult_t ncclGroupStart() {
  const NcclCall call{__func__};
  group().start();
  return call.done();
}

ncclResult_t ncclGroupEnd() {
  const NcclCall call{__func__};
  return group().end(call);
}

ncclResult_t ncclSend(const void* source, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return ask(__func__, comm, count,
             {.stream = stream,
              .function = Function::point_to_point,
              .source = static_cast<const std::byte*>(source),
              .type = type,
              .peer = peer});
}

ncclResult_t ncclRecv(void* target, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return ask(__func__, comm, count,
             {.stream = stream,
              .function = Function::point_to_point,
              .target = static_cast<std::byte*>(target),
              .type = type,
              .peer = peer});
}

ncclResult_t ncclAllGather(const void* source, void* target, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return ask(__func__, comm, count,
             {.stream = stream,
              .function = Function::all_gather,
              .source = static_cast<const std::byte*>(source),
              .target = static_cast<std::byte*>(target),
              .type = type});
}

ncclResult_t ncclReduceScatter(const void* source, void* target, size_t count, ncclDataType_t type,
                               ncclRedOp_t reduction, ncclComm_t comm, cudaStream_t stream) {
  return ask_sum(__func__, comm, count, reduction,
                 {.stream = stream,
                  .function = Function::reduce_scatter,
                  .source = static_cast<const std::byte*>(source),
                  .target = static_cast<std::byte*>(target),
                  .type = type});
}

ncclResult_t ncclAllReduce(const void* source, void* target, size_t count, ncclDataType_t type,
                           ncclRedOp_t reduction, ncclComm_t comm, cudaStream_t stream) {
  return ask_sum(__func__, comm, count, reduction,
                 {.stream = stream,
                  .function = Function::all_reduce,
                  .source = static_cast<const std::byte*>(source),
                  .target = static_cast<std::byte*>(target),
                  .type = type});
}

ncclResult_t ncclBroadcast(const void* source, void* target, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return ask(__func__, comm, count,
             {.stream = stream,
              .function = Function::broadcast,
              .source = static_cast<const std::byte*>(source),
              .target = static_cast<std::byte*>(target),
              .type = type,
              .peer = root});
}

}  // extern "C"
