#include "src/job/watchdog.hpp"

#include <algorithm>
#include <chrono>
#include <sstream>
#include <utility>

#include "kernels/stopwatch.hpp"

namespace hcp {

Watchdog::Watchdog(std::string who, double timeout_s, void (*expired)(const std::string&))
    : who_{std::move(who)},
      timeout_s_{timeout_s},
      expired_{expired},
      what_{std::string{"start-up"}},
      deadline_s_{now_s() + timeout_s} {
  thread_ = std::thread{&Watchdog::watch, this};
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock{mutex_};
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Watchdog::enter(std::string what) {
  begin(std::move(what));
}

void Watchdog::enter(int iteration, const Phase& phase) {
  begin(IterationPhase{iteration, phase});
}

std::string Watchdog::text_of(const Stretch& stretch) {
  if (const auto* what = std::get_if<std::string>(&stretch)) {
    return *what;
  }
  const auto& [iteration, phase] = std::get<IterationPhase>(stretch);
  return "iteration " + std::to_string(iteration) + ", layer " + std::to_string(phase.layer) +
         (phase.pass == Pass::forward ? ", forward" : ", backward") +
         (phase.level < 0 ? "" : ", level " + std::to_string(phase.level)) + ", step " +
         std::to_string(phase.step);
}

void Watchdog::begin(Stretch stretch) {
  const std::lock_guard lock{mutex_};
  what_ = std::move(stretch);
  deadline_s_ = now_s() + timeout_s_;  // later than before: the thread finds out when it wakes
}

void Watchdog::watch() {
  std::unique_lock lock{mutex_};
  while (!stopping_) {
    const double left = deadline_s_ - now_s();
    if (left <= 0) {
      std::ostringstream message;
      message << who_ << ": " << text_of(what_) << " did not finish within " << timeout_s_ << " s";
      expired_(message.str());
    }
    constexpr double longest_sleep_s = 3600.0;  // a timeout may be longer than a clock can count
    changed_.wait_for(lock, std::chrono::duration<double>{std::min(left, longest_sleep_s)});
  }
}

}  // namespace hcp
