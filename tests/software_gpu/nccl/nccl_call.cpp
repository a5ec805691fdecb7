#include "tests/software_gpu/nccl/nccl_call.hpp"

#include "tests/software_gpu/gpu.hpp"
#include "tests/software_gpu/operation.hpp"

namespace hcp::software_gpu {
namespace {

std::string& last_error() {
  static std::string& text = *new std::string;
  return text;
}

}  // namespace

Communicators& communicators() {
  static Communicators& instance = *new Communicators;
  return instance;
}

NcclCall::NcclCall(const char* name) : name_{name}, lock_{gpu().mutex} {}

ncclResult_t NcclCall::fail(ncclResult_t result, const std::string& what) const {
  last_error() = name_ + ": " + what;
  return result;
}

ncclResult_t NcclCall::misuse(ncclResult_t result, const std::string& what) const {
  report(name_ + ": " + what);
  return fail(result, what);
}

std::shared_ptr<Communicator> NcclCall::communicator(ncclComm_t handle) const {
  const std::shared_ptr<Communicator>* found = communicators().find(handle);
  if (found == nullptr) {
    static_cast<void>(misuse(ncclInvalidArgument, "a communicator that does not exist"));
    return nullptr;
  }
  return *found;
}

ncclResult_t NcclCall::wait_for(const Communicator& communicator) {
  const std::string hindrance =
      gpu().engine.wait(lock_, [&communicator] { return communicator.under_way == 0; });
  return hindrance.empty()
             ? ncclSuccess
             : misuse(ncclInternalError, communicator.name + " has launches under way; " + hindrance);
}

const char* last_nccl_error() {
  return last_error().c_str();
}

}  // namespace hcp::software_gpu
