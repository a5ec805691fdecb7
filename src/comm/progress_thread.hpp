/// Lets MPI move messages while the program computes.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <stop_token>
#include <thread>

#include "topology/mpi_environment.hpp"

namespace hcp {

/// A thread that enters MPI about each millisecond while transfers are open: MPI libraries without progress
/// of their own move large messages only inside MPI calls, of whatever kind and on whatever communicator.
/// Sleeps while nothing is open. Needs MPI_THREAD_MULTIPLE.
class ProgressThread {
 public:
  /// Collective over `parent`, of which a duplicate is made that never carries a message.
  explicit ProgressThread(const MpiCommunicator& parent);

  /// Each opened transfer has to be closed once.
  void transfer_opened();
  void transfer_closed();
  /// @throws MpiError that ended the thread, if one did
  void rethrow_error();

 private:
  void run(const std::stop_token& stop);

  MpiCommunicator probed_;
  std::mutex mutex_;
  std::condition_variable_any opened_;
  int open_ = 0;         ///< transfers
  bool asleep_ = false;  ///< until a transfer is opened
  std::exception_ptr error_;
  std::jthread thread_;  ///< last, so that it has ended before what it uses goes
};

}  // namespace hcp
