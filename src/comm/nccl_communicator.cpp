#include "src/comm/nccl_communicator.hpp"

#include <chrono>
#include <exception>
#include <future>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include "src/comm/nccl_library.hpp"
#include "topology/mpi_collectives.hpp"

namespace hcp {
namespace {

/// Longer than an abort takes whose peers abort as well; short beside the seconds in which ranks that give up
/// listen to each other.
constexpr std::chrono::seconds abort_patience{1};

/// In NCCL's log and in profilers. Headers before 2.27 have no names.
template <typename Config>
void set_name(Config& config, const std::string& name) {
  if constexpr (requires { config.commName; }) {
    config.commName = name.c_str();
  }
}

ncclUniqueId agreed_id(const MpiCommunicator& comm) {
  ncclUniqueId id{};
  if (comm.rank() == 0) {
    const NcclLibrary& nccl = nccl_library();
    nccl.check(nccl.get_unique_id(&id), "ncclGetUniqueId");
  }
  const std::string bytes = broadcast(comm, std::string_view{&id.internal[0], sizeof id.internal}, 0);
  bytes.copy(&id.internal[0], sizeof id.internal);
  return id;
}

}  // namespace

void OpenCommunicators::abort_all() noexcept {
  std::vector<std::future<void>> aborts;
  for (NcclCommunicator* communicator : std::exchange(open_, {})) {
    std::packaged_task<void()> abort{[comm = std::exchange(communicator->comm_, nullptr)] {
      static_cast<void>(nccl_library().comm_abort(comm));
    }};
    aborts.push_back(abort.get_future());
    std::thread{std::move(abort)}.detach();
  }
  const auto deadline = std::chrono::steady_clock::now() + abort_patience;
  for (const std::future<void>& abort : aborts) {
    abort.wait_until(deadline);
  }
}

NcclCommunicator::NcclCommunicator(const MpiCommunicator& comm, const Peers& peers, OpenCommunicators& open)
    : name_{"hcp, " + std::to_string(peers.size()) + " ranks from world rank " +
            std::to_string(peers.world_rank_of(0)) + " on"},
      open_{open} {
  const NcclLibrary& nccl = nccl_library();
  const ncclUniqueId id = agreed_id(comm);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 1;
  set_name(config, name_);
  nccl.check(nccl.comm_init_rank_config(&comm_, peers.size(), id, peers.rank(), &config),
             "ncclCommInitRankConfig");
  open_.add(*this);
}

NcclCommunicator::~NcclCommunicator() {
  if (comm_ == nullptr) {
    return;
  }
  if (std::uncaught_exceptions() > 0) {
    open_.abort_all();
    return;
  }
  open_.remove(*this);
  static_cast<void>(nccl_library().comm_destroy(comm_));
}

ncclComm_t NcclCommunicator::get() const {
  if (comm_ == nullptr) {
    throw std::runtime_error{"NCCL's communicators of this rank were aborted"};
  }
  return comm_;
}

std::string NcclCommunicator::asynchronous_error() const {
  const NcclLibrary& nccl = nccl_library();
  ncclResult_t state = ncclSuccess;
  nccl.check(nccl.comm_get_async_error(get(), &state), "ncclCommGetAsyncError", comm_);
  return state == ncclSuccess ? std::string{}
                              : std::string{nccl.get_error_string(state)} + "; " + nccl.get_last_error(comm_);
}

}  // namespace hcp
