#include "src/comm/nccl_library.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace hcp {
namespace {

constexpr const char* launch_order = "NCCL_LAUNCH_ORDER_IMPLICIT";
constexpr int first_with_launch_order = NCCL_VERSION(2, 26, 0);

/// Earlier ones do not know ncclCommInitRankConfig. Later ones take the configuration of any header: they
/// read no more of it than they know.
constexpr int oldest = NCCL_VERSION(2, 14, 0);

std::string version_text(int code) {
  const int major = code / (code < 10'000 ? 1'000 : 10'000);  // two digits for the minor number from 2.9 on
  const int rest = code % (code < 10'000 ? 1'000 : 10'000);
  return std::to_string(major) + "." + std::to_string(rest / 100) + "." + std::to_string(rest % 100);
}

class Loaded {
 public:
  explicit Loaded(std::span<const char* const> names) {
    std::string reason;
    for (const char* name : names) {
      handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
      if (handle_ != nullptr) {
        name_ = name;
        return;
      }
      reason += (reason.empty() ? "" : "; ") + std::string{dlerror()};
    }
    throw std::runtime_error{"NCCL cannot be loaded: " + reason};
  }

  [[nodiscard]] const std::string& name() const { return name_; }

  template <typename Function>
  void find(const char* symbol, Function& function) const {
    function = reinterpret_cast<Function>(dlsym(handle_, symbol));
    if (function == nullptr) {
      throw std::runtime_error{name_ + " has no " + symbol};
    }
  }

 private:
  void* handle_ = nullptr;  // never closed: NCCL has threads of its own
  std::string name_;
};

}  // namespace

std::string NcclLibrary::version() const {
  return version_text(version_code);
}

bool NcclLibrary::launches_in_order() const {
  const char* value = std::getenv(launch_order);
  return version_code >= first_with_launch_order && value != nullptr && std::atoi(value) != 0;
}

void NcclLibrary::check(ncclResult_t result, std::string_view call, ncclComm_t comm) const {
  if (result == ncclSuccess) {
    return;
  }
  const std::string more = get_last_error(comm);
  throw std::runtime_error{std::string{call} + ": " + get_error_string(result) +
                           (more.empty() ? "" : "; " + more)};
}

NcclLibrary load_nccl(std::span<const char* const> names) {
  const Loaded loaded{names};
  NcclLibrary nccl;
  loaded.find("ncclGetVersion", nccl.get_version);
  if (nccl.get_version(&nccl.version_code) != ncclSuccess || nccl.version_code < oldest) {
    throw std::runtime_error{loaded.name() + " is NCCL " + nccl.version() + "; " + version_text(oldest) +
                             " is the first that creates communicators from a configuration"};
  }
  loaded.find("ncclGetErrorString", nccl.get_error_string);
  loaded.find("ncclGetLastError", nccl.get_last_error);
  loaded.find("ncclGetUniqueId", nccl.get_unique_id);
  loaded.find("ncclCommInitRankConfig", nccl.comm_init_rank_config);
  loaded.find("ncclCommGetAsyncError", nccl.comm_get_async_error);
  loaded.find("ncclCommDestroy", nccl.comm_destroy);
  loaded.find("ncclCommAbort", nccl.comm_abort);
  loaded.find("ncclGroupStart", nccl.group_start);
  loaded.find("ncclGroupEnd", nccl.group_end);
  loaded.find("ncclSend", nccl.send);
  loaded.find("ncclRecv", nccl.recv);
  loaded.find("ncclAllGather", nccl.all_gather);
  return nccl;
}

const NcclLibrary& nccl_library() {
  static const NcclLibrary library = [] {
    setenv(launch_order, "1", 0);
    return load_nccl(std::array{"libnccl.so.2", "libnccl.so"});
  }();
  return library;
}

}  // namespace hcp
