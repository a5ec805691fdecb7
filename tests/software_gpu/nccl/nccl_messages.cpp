// Entry points of NCCL: groups, messages, collectives.

#include <nccl.h>

#include <string>
#include <utility>

#include "tests/software_gpu/nccl/data_type.hpp"
#include "tests/software_gpu/nccl/group.hpp"
#include "tests/software_gpu/nccl/nccl_call.hpp"

namespace {

using namespace hcp::software_gpu;  // NOLINT: NCCL's functions are in no namespace

/// @param request  without its communicator and its bytes
ncclResult_t ask(const char* name, ncclComm_t handle, std::size_t count, Request request) {
  const NcclCall call{name};
  request.communicator = call.communicator(handle);
  if (request.communicator == nullptr) {
    return ncclInvalidArgument;
  }
  request.bytes = count * bytes_of(request.type);
  return group().add(call, std::move(request));
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
