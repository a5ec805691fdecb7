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

cudaError_t Call::fail(cudaError_t error) const {
  last_error = error;
  return error;
}

cudaError_t Call::misuse(cudaError_t error, const std::string& what) const {
  gpu().misuses.push_back(std::string{name_} + ": " + what);
  return fail(error);
}

std::shared_ptr<Stream> Call::stream(cudaStream_t handle) const {
  if (handle == nullptr || handle == cudaStreamLegacy || handle == cudaStreamPerThread) {
    static_cast<void>(misuse(cudaErrorInvalidResourceHandle, "the default stream"));
    return nullptr;
  }
  const std::shared_ptr<Stream>* found = gpu().streams.find(handle);
  if (found == nullptr) {
    static_cast<void>(misuse(cudaErrorInvalidResourceHandle, "a stream that does not exist"));
    return nullptr;
  }
  return *found;
}

std::shared_ptr<Stream> Call::current_stream(cudaStream_t handle) const {
  std::shared_ptr<Stream> found = stream(handle);
  if (found != nullptr && found->device() != current_device()) {
    static_cast<void>(misuse(cudaErrorInvalidResourceHandle,
                             "a stream of device " + std::to_string(found->device()) + " while device " +
                                 std::to_string(current_device()) + " is current"));
    return nullptr;
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

cudaError_t Call::wait_until(const std::function<bool()>& done) {
  const std::string hindrance = gpu().engine.wait(lock_, done);
  return hindrance.empty() ? cudaSuccess : misuse(cudaErrorLaunchTimeout, hindrance);
}

cudaError_t Call::wait_for_device(int device) {
  const Clock clock = gpu().engine.clock_of(device);
  const cudaError_t waited = wait_until([&] { return gpu().engine.idle(device); });
  if (waited == cudaSuccess) {
    gpu().engine.host_waited_for(clock);
  }
  return waited;
}

cudaError_t Call::wait_for_all_devices() {
  for (int device = 0; device < gpu().devices.count(); ++device) {
    if (const cudaError_t waited = wait_for_device(device); waited != cudaSuccess) {
      return waited;
    }
  }
  return cudaSuccess;
}

cudaError_t Call::find_device(int device) const {
  if (gpu().devices.has(device)) {
    return cudaSuccess;
  }
  return fail(gpu().devices.count() == 0 ? cudaErrorNoDevice : cudaErrorInvalidDevice);
}

cudaError_t take_last_error() {
  return std::exchange(last_error, cudaSuccess);
}

}  // namespace hcp::software_gpu
