#include "src/comm/progress_thread.hpp"

#include <mpi.h>

#include <chrono>

namespace hcp {
namespace {

constexpr std::chrono::milliseconds probe_period{1};

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
  if (++open_ == 1) opened_.notify_one();
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
  while (opened_.wait(lock, stop, [this] { return open_ > 0; })) {
    // The first probe comes a period after the start: what is short has then been waited for already.
    opened_.wait_for(lock, stop, probe_period, [this] { return open_ == 0; });
    if (open_ == 0 || stop.stop_requested()) continue;
    lock.unlock();
    int arrived = 0;
    check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, probed_.get(), &arrived, MPI_STATUS_IGNORE),
              "MPI_Iprobe");
    lock.lock();
  }
}

}  // namespace hcp
