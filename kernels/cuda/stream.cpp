#include "kernels/cuda/stream.hpp"

#include <limits>
#include <utility>

#include "kernels/cuda/check.hpp"

namespace hcp::cuda {

Stream::Stream(Priority priority) {
  // The lower the number, the higher the priority; CUDA takes the highest that the device has.
  const int number = priority == Priority::high ? std::numeric_limits<int>::min() : 0;
  check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, number),
        "cudaStreamCreateWithPriority");
}

Stream::~Stream() {
  static_cast<void>(cudaStreamDestroy(stream_));
}

void Stream::wait_for(const Event& event) {
  check(cudaStreamWaitEvent(stream_, event.get(), 0), "cudaStreamWaitEvent");
}

void Stream::synchronise() {
  check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
}

Event::Event(Kind kind) {
  check(cudaEventCreateWithFlags(&event_, kind == Kind::time ? cudaEventDefault : cudaEventDisableTiming),
        "cudaEventCreateWithFlags");
}

Event::Event(Event&& other) noexcept : event_{std::exchange(other.event_, nullptr)} {}

Event& Event::operator=(Event&& other) noexcept {
  std::swap(event_, other.event_);
  return *this;
}

Event::~Event() {
  if (event_ != nullptr) {
    static_cast<void>(cudaEventDestroy(event_));
  }
}

void Event::record(const Stream& stream) {
  check(cudaEventRecord(event_, stream.get()), "cudaEventRecord");
}

bool Event::has_passed() const {
  const cudaError_t result = cudaEventQuery(event_);
  if (result == cudaErrorNotReady) {
    static_cast<void>(cudaGetLastError());
    return false;
  }
  check(result, "cudaEventQuery");
  return true;
}

void Event::synchronise() const {
  check(cudaEventSynchronize(event_), "cudaEventSynchronize");
}

double seconds_between(const Event& begin, const Event& end) {
  float milliseconds = 0.0F;
  check(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()), "cudaEventElapsedTime");
  return static_cast<double>(milliseconds) * 1e-3;
}

}  // namespace hcp::cuda
