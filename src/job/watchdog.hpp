/// Ends the job when a stretch of it does not finish in time, whatever it hangs in.
///
/// The transports have deadlines of their own and name the peer that they wait for; the watchdog is for
/// everything else (collectives of set-up and verification, a kernel that never returns), and fires later
/// than they do.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <variant>

#include "src/attention/phase_log.hpp"

namespace hcp {

class Watchdog {
 public:
  /// @param who        begins the message: "world rank 3"
  /// @param expired    called on the watchdog's thread with the message; does not return
  Watchdog(std::string who, double timeout_s, void (*expired)(const std::string&));
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  ~Watchdog();

  /// From now on the job does `what`, and has the whole timeout for it.
  void enter(std::string what);
  /// The same for a phase of an iteration, made into words only if its time runs out: this is told of every
  /// instruction while the clock runs.
  void enter(int iteration, const Phase& phase);

 private:
  struct IterationPhase {
    int iteration = 0;
    Phase phase;
  };
  using Stretch = std::variant<std::string, IterationPhase>;
  [[nodiscard]] static std::string text_of(const Stretch& stretch);

  void begin(Stretch stretch);
  void watch();

  std::string who_;
  double timeout_s_;
  void (*expired_)(const std::string&);
  std::mutex mutex_;
  std::condition_variable changed_;
  Stretch what_;
  double deadline_s_ = 0.0;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace hcp
