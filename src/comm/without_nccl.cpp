// What the program offers of NCCL where it is built without it.

#include <stdexcept>

#include "src/comm/nccl_transport.hpp"

namespace hcp {
namespace {

constexpr const char* built_without = "this hcp was built without NCCL";

}  // namespace

class NcclTransports::Shared {};

NcclSearch find_nccl() {
  return {.version = {}, .reason = built_without};
}

std::string nccl_build() {
  return "none (built without)";
}

NcclTransports::NcclTransports(std::shared_ptr<cuda::Stream> /*compute*/, bool /*serialize_levels*/) {
  throw std::runtime_error{built_without};
}
NcclTransports::~NcclTransports() = default;

std::unique_ptr<Transport> NcclTransports::make(const MpiCommunicator& /*comm*/, double /*timeout_s*/) {
  throw std::runtime_error{built_without};
}

std::string NcclTransports::order() const {
  throw std::runtime_error{built_without};
}

}  // namespace hcp
