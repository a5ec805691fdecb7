#include "src/comm/progress_thread.hpp"

#include <mpi.h>

#include <chrono>

namespace hcp {
namespace {

constexpr std::chrono::milliseconds probe_period{1};

/// Waking a thread costs several microseconds, so in a run of short transfers it does not fall asleep between
/// them.
constexpr int idle_periods_before_sleep = 50;

}  // namespace

ProgressThread::ProgressThread(const MpiCommunicator& parent)
    : probed_{MpiCommunicator::duplicate(parent.get())}, thread_{[this](const std::stop_token& stop) {
        try {
          run(stop);
        } catch (...) {
          const std::lock_guard lock{mutex_};
          error_ = std::current_exception();
        }
      }} {}

void ProgressThread::transfer_opened() {
  const std::lock_guard lock{mutex_};
  ++open_;
  if (asleep_) opened_.notify_one();
}

void ProgressThread::transfer_closed() {
  const std::lock_guard lock{mutex_};
  --open_;
}

void ProgressThread::rethrow_error() {
  const std::lock_guard lock{mutex_};
  if (error_) std::rethrow_exception(error_);
}

void ProgressThread::run(const std::stop_token& stop) {
  std::unique_lock lock{mutex_};
  for (int idle_periods = 0; !stop.stop_requested(); ++idle_periods) {
    if (idle_periods >= idle_periods_before_sleep) {
      asleep_ = true;
      opened_.wait(lock, stop, [this] { return open_ > 0; });
      asleep_ = false;
    }
    // A period passes before the first probe as well: what is short has then been waited for already.
    opened_.wait_for(lock, stop, probe_period, [] { return false; });
    if (open_ == 0 || stop.stop_requested()) continue;
    idle_periods = 0;
    lock.unlock();
    int arrived = 0;
    check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, probed_.get(), &arrived, MPI_STATUS_IGNORE),
              "MPI_Iprobe");
    lock.lock();
  }
}

}  // namespace hcp
