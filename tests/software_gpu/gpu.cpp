#include "tests/software_gpu/gpu.hpp"

#include <utility>

namespace hcp::software_gpu {
namespace {

thread_local cudaError_t last_error = cudaSuccess;

}  // namespace

Gpu& gpu() {
  static Gpu& instance = *new Gpu;
  return instance;
}

void Stream::submit(const std::function<void()>& operation) {
  const Memory::Opened opened{gpu().memory};
  operation();
}

cudaError_t Call::fail(cudaError_t error) const {
  last_error = error;
  return error;
}

cudaError_t Call::misuse(cudaError_t error, const std::string& what) const {
  gpu().misuses.push_back(std::string{name_} + ": " + what);
  return fail(error);
}

Stream* Call::stream(cudaStream_t handle) const {
  if (handle == nullptr || handle == cudaStreamLegacy || handle == cudaStreamPerThread) {
    static_cast<void>(misuse(cudaErrorInvalidResourceHandle, "the default stream"));
    return nullptr;
  }
  Stream* found = gpu().streams.find(handle);
  if (found == nullptr) {
    static_cast<void>(misuse(cudaErrorInvalidResourceHandle, "a stream that does not exist"));
  }
  return found;
}

Event* Call::event(cudaEvent_t handle) const {
  Event* found = gpu().events.find(handle);
  if (found == nullptr) {
    static_cast<void>(misuse(cudaErrorInvalidResourceHandle, "an event that does not exist"));
  }
  return found;
}

cudaError_t take_last_error() {
  return std::exchange(last_error, cudaSuccess);
}

}  // namespace hcp::software_gpu
