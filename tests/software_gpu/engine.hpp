/// Streams of the software GPU and what runs in them when.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/software_gpu/clock.hpp"
#include "tests/software_gpu/operation.hpp"
#include "tests/software_gpu/schedule.hpp"

namespace hcp::software_gpu {

class Engine;

/// A queue of operations. Made by Engine::add_stream.
class Stream {
 public:
  /// It is done after all that the stream was asked for so far and all that the host knows to be done.
  void submit(std::string name, Advance advance);
  /// The same, for an operation that only marks a place in the stream or waits. Memory stays closed.
  void submit_mark(std::string name, Advance advance);
  /// For a planted bug: comes before the last operation that is no mark.
  /// @return what is done when it is
  Clock submit_early_mark(std::string name, Advance advance);

  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] int device() const { return device_; }
  [[nodiscard]] bool idle() const { return queue_.empty(); }
  /// Whether it was ever asked to.
  [[nodiscard]] bool runs_kernels() const { return runs_kernels_; }
  void note_kernel() { runs_kernels_ = true; }
  /// Covers all that was submitted.
  [[nodiscard]] const Clock& clock() const { return clock_; }

  /// What is submitted from now on comes after this, too. The operation that waits for it is the caller's.
  void order_after(const Clock& clock) { clock_.join(clock); }

 private:
  friend class Engine;
  struct Queued {
    Operation operation;
    Advance advance;
    std::uint64_t submitted = 0;
    bool mark = false;
    bool started = false;
  };

  Stream(Engine& engine, int number, int device, Stamp last)
      : engine_{engine}, number_{number}, device_{device}, last_{last} {}

  void submit(std::string name, Advance advance, bool mark);

  Engine& engine_;
  int number_;
  int device_;
  bool runs_kernels_ = false;
  Stamp last_;  ///< submitted
  Clock clock_;
  Clock before_work_;  ///< of all before the last operation that is no mark
  std::deque<Queued> queue_;
};

/// All under the lock of a Call.
class Engine {
 public:
  Engine() : schedule_{0} {}
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// From now on, when all streams are idle.
  void set_schedule(unsigned seed) { schedule_ = Schedule{seed}; }
  /// Whether operations may come late and are checked.
  [[nodiscard]] bool deferred() const { return !schedule_.in_order(); }
  void set_patience(double seconds) { patience_s_ = seconds; }

  [[nodiscard]] std::shared_ptr<Stream> add_stream(int device);
  /// What it has been asked for will be done.
  void remove_stream(const std::shared_ptr<Stream>& stream);

  /// Runs one operation that can be done now, if there is one.
  bool step();
  /// Runs operations until `done`; in between others may take the lock.
  /// @return what keeps it from being done, if nothing happened for too long; else empty
  [[nodiscard]] std::string wait(std::unique_lock<std::mutex>& lock, const std::function<bool()>& done);
  /// Runs all that can be done, and the host knows it. @return what cannot
  [[nodiscard]] std::string drain();

  /// Of the device: all operations so far.
  [[nodiscard]] bool idle(int device) const;
  [[nodiscard]] Clock clock_of(int device) const;

  [[nodiscard]] const Clock& host() const { return host_; }
  /// The host has waited for what the clock covers.
  void host_waited_for(const Clock& clock);
  /// A new operation of the host itself.
  [[nodiscard]] Operation host_operation(std::string name);

 private:
  friend class Stream;

  void submitted();
  bool try_head(Stream& stream);
  /// @return whether an operation was done
  bool step_until(const std::function<bool()>& done);
  [[nodiscard]] std::string heads() const;
  void reuse_slots();

  Schedule schedule_;
  double patience_s_ = 60.0;
  std::vector<std::shared_ptr<Stream>> streams_;  ///< that live
  std::vector<std::shared_ptr<Stream>> removed_;  ///< that were destroyed and of which the host knows no end
  std::vector<Stamp> free_slots_;                 ///< last operations in them
  std::uint32_t slots_ = 1;
  int last_number_ = 0;
  std::uint64_t submissions_ = 0;
  Clock host_;
  Stamp host_last_;
};

}  // namespace hcp::software_gpu
