// Entry points of NCCL: versions, errors, communicators.

#include <nccl.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "tests/software_gpu/gpu.hpp"
#include "tests/software_gpu/nccl/group.hpp"
#include "tests/software_gpu/nccl/nccl_call.hpp"
#include "tests/software_gpu/nccl/nccl_record.hpp"
#include "tests/software_gpu/nccl/nccl_world.hpp"
#include "tests/software_gpu/nccl/rendezvous.hpp"
#include "tests/software_gpu/planted_bugs.hpp"

namespace {

using namespace hcp::software_gpu;  // NOLINT: NCCL's functions are in no namespace

/// Empty if there is none: names came with NCCL 2.27.
template <typename Config>
std::string chosen_name(const Config& config) {
  if constexpr (requires { config.commName; }) {
    return config.commName == nullptr ? "" : config.commName;
  }
  return {};
}

/// What is wrong with it; empty if nothing is.
std::string fault_of(const ncclConfig_t& config) {
  const ncclConfig_t initial = NCCL_CONFIG_INITIALIZER;
  if (config.size != initial.size || config.magic != initial.magic || config.version != initial.version) {
    return "a configuration that is not made by NCCL_CONFIG_INITIALIZER";
  }
  if (config.blocking != NCCL_CONFIG_UNDEF_INT && config.blocking != 1) {
    return "the double's communicators are blocking ones";
  }
  return {};
}

/// This rank and the calling thread's device.
Member member_of(int rank, int size) {
  Member member{.rank = rank, .size = size, .device = current_device()};
  PMPI_Comm_rank(nccl_world(), &member.world_rank);
  gethostname(member.host.data(), member.host.size() - 1);
  gpu().devices.pci_bus_id(member.device).copy(member.bus_id.data(), member.bus_id.size() - 1);
  return member;
}

ncclResult_t make_communicator(const char* name, ncclComm_t* handle, int size, const ncclUniqueId& id,
                               int rank, const std::string& chosen) {
  NcclCall call{name};
  *handle = nullptr;
  if (group().open()) {
    return call.misuse(ncclInvalidUsage, "the double makes no communicator in a group");
  }
  if (size < 1 || rank < 0 || rank >= size) {
    return call.misuse(ncclInvalidArgument, "rank " + std::to_string(rank) + " of " + std::to_string(size));
  }
  const Member myself = member_of(rank, size);
  Meeting meeting = meet(call.lock(), id, myself);
  const std::string text =
      (chosen.empty() ? "communicator " + std::to_string(meeting.communicator) : "'" + chosen + "'");
  if (meeting.result == ncclInvalidUsage) {
    return call.fail(meeting.result, text + ": " + meeting.reason);
  }
  if (meeting.result != ncclSuccess) {
    return call.misuse(meeting.result, text + ": " + meeting.reason);
  }
  nccl_record().communicators[meeting.communicator] = text;
  *handle = communicators().add(std::make_shared<Communicator>(Communicator{
      .number = meeting.communicator,
      .name = text,
      .rank = rank,
      .world_ranks = std::move(meeting.world_ranks),
      .device = myself.device,
  }));
  return call.done();
}

/// Of something that lives as long as the communicator.
template <typename Value, typename Get>
ncclResult_t tell(const char* name, ncclComm_t handle, Value* value, Get get) {
  const NcclCall call{name};
  const std::shared_ptr<Communicator> communicator = call.communicator(handle);
  if (communicator == nullptr) {
    return ncclInvalidArgument;
  }
  *value = get(*communicator);
  return call.done();
}

void forget(ncclComm_t handle, const Communicator& communicator) {
  nccl_record().communicators.erase(communicator.number);
  communicators().remove(handle);
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  const NcclCall call{__func__};
  *version = NCCL_VERSION_CODE;
  return call.done();
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const NcclCall call{__func__};
  *id = make_unique_id();
  return call.done();
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* handle, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (const std::string fault = config == nullptr ? "" : fault_of(*config); !fault.empty()) {
    return NcclCall{__func__}.misuse(ncclInvalidArgument, fault);
  }
  return make_communicator(__func__, handle, size, id, rank, config == nullptr ? "" : chosen_name(*config));
}

ncclResult_t ncclCommInitRank(ncclComm_t* handle, int size, ncclUniqueId id, int rank) {
  return make_communicator(__func__, handle, size, id, rank, "");
}

ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  NcclCall call{__func__};
  const std::shared_ptr<Communicator> communicator = call.communicator(handle);
  if (communicator == nullptr) {
    return ncclInvalidArgument;
  }
  if (std::exchange(communicator->finalized, true)) {
    return call.misuse(ncclInvalidUsage, communicator->name + " was finalized before");
  }
  return call.wait_for(*communicator);
}

ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  NcclCall call{__func__};
  const std::shared_ptr<Communicator> communicator = call.communicator(handle);
  if (communicator == nullptr) {
    return ncclInvalidArgument;
  }
  if (has_bug(Bug::leaked_communicator)) {
    return call.done();
  }
  const ncclResult_t result = call.wait_for(*communicator);
  forget(handle, *communicator);
  return result;
}

/// Launches that are under way end without data, those that wait for earlier operations of their stream when
/// it comes to them.
ncclResult_t ncclCommAbort(ncclComm_t handle) {
  NcclCall call{__func__};
  const std::shared_ptr<Communicator> communicator = call.communicator(handle);
  if (communicator == nullptr) {
    return ncclInvalidArgument;
  }
  if (has_bug(Bug::ignored_abort)) {
    return call.done();
  }
  communicator->aborted = true;
  nccl_record().aborted.insert(communicator->number);
  forget(handle, *communicator);
  return call.done();
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* error) {
  return tell(__func__, handle, error, [](const Communicator&) { return ncclSuccess; });
}

ncclResult_t ncclCommCount(const ncclComm_t handle, int* count) {
  return tell(__func__, handle, count, [](const Communicator& communicator) { return communicator.size(); });
}

ncclResult_t ncclCommUserRank(const ncclComm_t handle, int* rank) {
  return tell(__func__, handle, rank, [](const Communicator& communicator) { return communicator.rank; });
}

ncclResult_t ncclCommCuDevice(const ncclComm_t handle, int* device) {
  return tell(__func__, handle, device, [](const Communicator& communicator) { return communicator.device; });
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInternalError:
      return "internal error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "operation in progress";
    default:
      return "unknown result code";
  }
}

const char* ncclGetLastError(ncclComm_t /*handle*/) {
  return last_nccl_error();
}

}  // extern "C"
