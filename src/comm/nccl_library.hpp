/// NCCL's functions, found when the program runs: it is built with NCCL's header and links no library of it.
#pragma once

#include <nccl.h>

#include <span>
#include <string>
#include <string_view>

namespace hcp {

struct NcclLibrary {
  decltype(&ncclGetVersion) get_version = nullptr;
  decltype(&ncclGetErrorString) get_error_string = nullptr;
  decltype(&ncclGetLastError) get_last_error = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRankConfig) comm_init_rank_config = nullptr;
  decltype(&ncclCommGetAsyncError) comm_get_async_error = nullptr;
  decltype(&ncclCommDestroy) comm_destroy = nullptr;
  decltype(&ncclCommAbort) comm_abort = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) recv = nullptr;
  decltype(&ncclAllGather) all_gather = nullptr;

  int version_code = 0;  ///< as NCCL_VERSION makes it

  /// "2.28.9"
  [[nodiscard]] std::string version() const;

  /// Whether NCCL starts its kernels of all communicators in the order in which the host asks for them: it
  /// can from 2.26 on, and does where the environment has NCCL_LAUNCH_ORDER_IMPLICIT.
  /// @source NCCL's user guide, "Using multiple NCCL communicators concurrently"
  [[nodiscard]] bool launches_in_order() const;

  /// @param call  name of the function that gave the result
  /// @throws std::runtime_error with it and NCCL's own words, unless the result is ncclSuccess
  void check(ncclResult_t result, std::string_view call, ncclComm_t comm = nullptr) const;
};

/// The first of the libraries that there is. It stays loaded.
/// @param names  as the dynamic linker knows them
/// @throws std::runtime_error with the one reason: none is there, it is too old, or lacks a function
[[nodiscard]] NcclLibrary load_nccl(std::span<const char* const> names);

/// That of this process, loaded when it is asked for first. Before that NCCL_LAUNCH_ORDER_IMPLICIT=1 is put
/// into the environment, unless the user has set it: so no other thread may read the environment then.
/// @throws std::runtime_error as load_nccl
[[nodiscard]] const NcclLibrary& nccl_library();

}  // namespace hcp
