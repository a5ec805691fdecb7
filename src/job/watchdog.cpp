#include "src/job/watchdog.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <sstream>
#include <utility>

#include "kernels/stopwatch.hpp"

namespace hcp {

Watchdog::Watchdog(std::string who, double timeout_s, void (*expired)(const std::string&))
    : who_{std::move(who)},
      timeout_s_{timeout_s},
      expired_{expired},
      what_{"start-up"},
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
  const std::lock_guard lock{mutex_};
  const bool rested = std::isinf(deadline_s_);
  what_ = std::move(what);
  deadline_s_ = now_s() + timeout_s_;
  if (rested) {
    changed_.notify_one();
  }
}

void Watchdog::rest() {
  const std::lock_guard lock{mutex_};
  deadline_s_ = std::numeric_limits<double>::infinity();
}

void Watchdog::watch() {
  std::unique_lock lock{mutex_};
  while (!stopping_) {
    const double left = deadline_s_ - now_s();
    if (left <= 0) {
      std::ostringstream message;
      message << who_ << ": " << what_ << " did not finish within " << timeout_s_ << " s";
      expired_(message.str());
    }
    constexpr double longest_sleep_s = 3600.0;  // infinity is no time that a clock can wait for
    changed_.wait_for(lock, std::chrono::duration<double>{std::min(left, longest_sleep_s)});
  }
}

}  // namespace hcp
