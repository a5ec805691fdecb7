// What the program offers of device transports where it is built without CUDA.

#include <stdexcept>

#include "src/comm/staged_transport.hpp"

namespace hcp {
namespace {

constexpr const char* built_without = "this hcp was built without CUDA";

}  // namespace

class StagedTransports::Shared {};

MpiDeviceSupport probe_device_support(const MpiCommunicator& /*everyone*/, MemorySource& /*device*/) {
  return {.path = DevicePath::pinned, .reason = built_without};
}

StagedTransports::StagedTransports(std::shared_ptr<cuda::Stream> /*compute*/, DevicePath /*path*/,
                                   std::int64_t /*chunk_bytes*/) {
  throw std::runtime_error{built_without};
}
StagedTransports::~StagedTransports() = default;

std::unique_ptr<Transport> StagedTransports::make(const MpiCommunicator& /*comm*/, double /*timeout_s*/) {
  throw std::runtime_error{built_without};
}

}  // namespace hcp
