// Entry points of the CUDA runtime: streams and events.

#include <cuda_runtime_api.h>

#include <chrono>

#include "tests/software_gpu/gpu.hpp"
#include "tests/software_gpu/planted_bugs.hpp"

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
  if (const cudaError_t found = call.find_device(current_device()); found != cudaSuccess) {
    return found;
  }
  *stream = gpu().streams.add(gpu().engine.add_stream(current_device()));
  return call.done();
}

/// The schedule knows no priorities.
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int /*priority*/) {
  return cudaStreamCreateWithFlags(stream, flags);
}

/// What the stream was asked for is done all the same.
cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  const Call call{__func__};
  const std::shared_ptr<Stream> stream = call.stream(handle);
  if (stream == nullptr) {
    return cudaErrorInvalidResourceHandle;
  }
  gpu().streams.remove(handle);
  gpu().engine.remove_stream(stream);
  return call.done();
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  Call call{__func__};
  const std::shared_ptr<Stream> stream = call.stream(handle);
  if (stream == nullptr) {
    return cudaErrorInvalidResourceHandle;
  }
  if (has_bug(Bug::skip_synchronise)) {
    return call.done();
  }
  const Clock clock = stream->clock();
  const cudaError_t waited = call.wait_until([&] { return stream->idle(); });
  if (waited == cudaSuccess) {
    gpu().engine.host_waited_for(clock);
  }
  return waited;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream_handle, cudaEvent_t event_handle, unsigned flags) {
  const Call call{__func__};
  const std::shared_ptr<Stream> stream = call.stream(stream_handle);
  const Event* event = call.event(event_handle);
  if (stream == nullptr || event == nullptr) {
    return cudaErrorInvalidResourceHandle;
  }
  if (flags != 0) {
    return call.misuse(cudaErrorInvalidValue, "flags");
  }
  if (event->record == nullptr) {  // a device waits for nothing
    return call.misuse(cudaSuccess, "an event that was never recorded");
  }
  if (has_bug(event->record->of_compute ? Bug::skip_wait_on_compute : Bug::skip_wait_on_transport)) {
    return call.done();
  }
  stream->order_after(event->record->clock);
  stream->submit_mark("cudaStreamWaitEvent",
                      [record = event->record](const Operation&, bool) { return record->passed; });
  return call.done();
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  const Call call{__func__};
  if (flags != cudaEventDefault && flags != cudaEventDisableTiming) {
    return call.misuse(cudaErrorInvalidValue, "flags");
  }
  if (const cudaError_t found = call.find_device(current_device()); found != cudaSuccess) {
    return found;
  }
  *event =
      gpu().events.add({.device = current_device(), .timed = flags == cudaEventDefault, .record = nullptr});
  return call.done();
}

/// Whoever waits for it goes on to do so.
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
  const std::shared_ptr<Stream> stream = call.current_stream(stream_handle);
  Event* event = call.event(event_handle);
  if (stream == nullptr || event == nullptr) {
    return cudaErrorInvalidResourceHandle;
  }
  if (event->device != stream->device()) {
    return call.misuse(cudaErrorInvalidResourceHandle, "an event of another device");
  }
  const auto record = std::make_shared<Event::Record>();
  event->record = record;
  record->of_compute = stream->runs_kernels();
  const Advance pass = [record](const Operation&, bool) {
    record->passed = true;
    record->passed_s = now_s();
    return true;
  };
  if (has_bug(Bug::early_record)) {
    record->clock = stream->submit_early_mark("cudaEventRecord", pass);
    return call.done();
  }
  stream->submit_mark("cudaEventRecord", pass);
  record->clock = stream->clock();
  return call.done();
}

/// An event that was never recorded has passed.
cudaError_t cudaEventQuery(cudaEvent_t handle) {
  const Call call{__func__};
  const Event* event = call.event(handle);
  if (event == nullptr) {
    return cudaErrorInvalidResourceHandle;
  }
  const std::shared_ptr<Event::Record> record = event->record;
  if (record == nullptr) {
    return call.done();
  }
  if (has_bug(Bug::early_query)) {
    return call.done();
  }
  if (!record->passed) {
    gpu().engine.step();  // so that a host that asks again and again comes to an end
  }
  if (!record->passed) {
    return call.fail(cudaErrorNotReady);
  }
  gpu().engine.host_waited_for(record->clock);
  return call.done();
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  Call call{__func__};
  const Event* event = call.event(handle);
  if (event == nullptr) {
    return cudaErrorInvalidResourceHandle;
  }
  const std::shared_ptr<Event::Record> record = event->record;
  if (record == nullptr || has_bug(Bug::skip_synchronise)) {
    return call.done();
  }
  const cudaError_t waited = call.wait_until([&] { return record->passed; });
  if (waited == cudaSuccess) {
    gpu().engine.host_waited_for(record->clock);
  }
  return waited;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin_handle, cudaEvent_t end_handle) {
  const Call call{__func__};
  const Event* begin = call.event(begin_handle);
  const Event* end = call.event(end_handle);
  if (begin == nullptr || end == nullptr) {
    return cudaErrorInvalidResourceHandle;
  }
  if (!begin->timed || !end->timed || begin->record == nullptr || end->record == nullptr) {
    return call.misuse(cudaErrorInvalidResourceHandle, "an event that tells no time or was never recorded");
  }
  if (!begin->record->passed || !end->record->passed) {
    return call.fail(cudaErrorNotReady);
  }
  *milliseconds = static_cast<float>((end->record->passed_s - begin->record->passed_s) * 1e3);
  return call.done();
}

}  // extern "C"
