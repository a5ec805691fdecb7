// Entry points of the CUDA runtime: streams and events.

#include <cuda_runtime_api.h>

#include <chrono>

#include "tests/software_gpu/gpu.hpp"

namespace {

using namespace hcp::software_gpu;  // NOLINT: the runtime's functions are in no namespace

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  const Call call{__func__};
  if (flags != cudaStreamNonBlocking) {
    return call.misuse(cudaErrorInvalidValue, "a stream that waits for the default stream");
  }
  *stream = gpu().streams.add({});
  return call.done();
}

/// The schedule knows no priorities.
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int /*priority*/) {
  return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Call call{__func__};
  if (call.stream(stream) == nullptr) {
    return cudaErrorInvalidResourceHandle;
  }
  gpu().streams.remove(stream);
  return call.done();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const Call call{__func__};
  return call.stream(stream) == nullptr ? cudaErrorInvalidResourceHandle : call.done();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream_handle, cudaEvent_t event_handle, unsigned flags) {
  const Call call{__func__};
  Stream* stream = call.stream(stream_handle);
  const Event* event = call.event(event_handle);
  if (stream == nullptr || event == nullptr) {
    return cudaErrorInvalidResourceHandle;
  }
  if (flags != 0) {
    return call.misuse(cudaErrorInvalidValue, "flags");
  }
  if (!event->passed_s) {  // a device waits for nothing
    return call.misuse(cudaSuccess, "an event that was never recorded");
  }
  return call.done();
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  const Call call{__func__};
  if (flags != cudaEventDefault && flags != cudaEventDisableTiming) {
    return call.misuse(cudaErrorInvalidValue, "flags");
  }
  *event = gpu().events.add({.timed = flags == cudaEventDefault, .passed_s = {}});
  return call.done();
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const Call call{__func__};
  if (call.event(event) == nullptr) {
    return cudaErrorInvalidResourceHandle;
  }
  gpu().events.remove(event);
  return call.done();
}

cudaError_t cudaEventRecord(cudaEvent_t event_handle, cudaStream_t stream_handle) {
  const Call call{__func__};
  Stream* stream = call.stream(stream_handle);
  Event* event = call.event(event_handle);
  if (stream == nullptr || event == nullptr) {
    return cudaErrorInvalidResourceHandle;
  }
  stream->submit([&] { event->passed_s = now_s(); });
  return call.done();
}

/// An event that was never recorded has passed.
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Call call{__func__};
  return call.event(event) == nullptr ? cudaErrorInvalidResourceHandle : call.done();
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const Call call{__func__};
  return call.event(event) == nullptr ? cudaErrorInvalidResourceHandle : call.done();
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin_handle, cudaEvent_t end_handle) {
  const Call call{__func__};
  const Event* begin = call.event(begin_handle);
  const Event* end = call.event(end_handle);
  if (begin == nullptr || end == nullptr) {
    return cudaErrorInvalidResourceHandle;
  }
  if (!begin->timed || !end->timed || !begin->passed_s || !end->passed_s) {
    return call.misuse(cudaErrorInvalidResourceHandle, "an event that tells no time or was never recorded");
  }
  *milliseconds = static_cast<float>((*end->passed_s - *begin->passed_s) * 1e3);
  return call.done();
}

}  // extern "C"
