/// Streams and events of a device, owned. What the host asks of a stream is done later, in order; an event
/// marks a place in that order.
#pragma once

struct CUstream_st;  // what cudaStream_t and cudaEvent_t point to
struct CUevent_st;

namespace hcp::cuda {

class Event;

/// Does not order itself against the legacy default stream, which nothing here uses. Neither copied nor
/// moved: whoever holds a reference may keep it.
class Stream {
 public:
  /// Blocks of kernels on a stream of high priority go first to whatever becomes free of the device.
  enum class Priority { normal, high };

  /// On the current device. @throws std::runtime_error
  explicit Stream(Priority priority = Priority::normal);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();

  /// What is asked for from now on begins after the event has passed. The host does not wait.
  void wait_for(const Event& event);
  /// The host waits until all that was asked for is done.
  void synchronise();

  [[nodiscard]] CUstream_st* get() const { return stream_; }

 private:
  CUstream_st* stream_ = nullptr;
};

/// Move-only. Before the first record() it counts as passed.
class Event {
 public:
  enum class Kind { order, time };  ///< time: seconds_between can tell when it passed; costs more

  /// On the current device. @throws std::runtime_error
  explicit Event(Kind kind);
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;
  ~Event();

  /// Passes when all that `stream` was asked for so far is done.
  void record(const Stream& stream);
  [[nodiscard]] bool has_passed() const;
  /// The host waits for it.
  void synchronise() const;

  [[nodiscard]] CUevent_st* get() const { return event_; }

 private:
  CUevent_st* event_ = nullptr;
};

/// Of two events of Kind::time that have passed, to about 0.5 microseconds.
[[nodiscard]] double seconds_between(const Event& begin, const Event& end);

}  // namespace hcp::cuda
