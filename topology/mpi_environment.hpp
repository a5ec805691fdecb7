/// MPI's lifetime, its errors and its communicators: every MPI handle of the program has one owner here.
///
/// Errors are exceptions that travel to main, which calls abort_all_ranks: the other ranks may stand in a
/// collective that the throwing rank will never join. So nothing here is collective while an exception
/// unwinds.
#pragma once

#include <mpi.h>

#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hcp {

/// An MPI call failed. The message holds the call, the place, the world rank and MPI's own text.
class MpiError : public std::runtime_error {
 public:
  MpiError(int code, std::string_view call, const std::source_location& where);
  [[nodiscard]] int code() const noexcept { return code_; }

 private:
  int code_;
};

/// @throws MpiError unless `code` is MPI_SUCCESS
inline void check_mpi(int code, std::string_view call,
                      const std::source_location& where = std::source_location::current()) {
  if (code != MPI_SUCCESS) [[unlikely]] {
    throw MpiError{code, call, where};
  }
}

/// Initialises MPI, asking for MPI_THREAD_MULTIPLE, and finalizes it. One per process, in main.
///
/// Errors on the world communicator are returned, not fatal; communicators made from it inherit that.
class MpiEnvironment {
 public:
  MpiEnvironment(int& argc, char**& argv);
  MpiEnvironment(const MpiEnvironment&) = delete;
  MpiEnvironment& operator=(const MpiEnvironment&) = delete;
  /// Does not finalize while an exception unwinds: finalizing waits for ranks that may never come.
  ~MpiEnvironment();

  /// This process among all ranks of the job.
  [[nodiscard]] int world_rank() const;
  [[nodiscard]] int world_size() const;
  /// The granted level: MPI_THREAD_SINGLE … MPI_THREAD_MULTIPLE.
  [[nodiscard]] int thread_level() const noexcept { return thread_level_; }
  /// Whether several threads may call MPI at the same time.
  [[nodiscard]] bool grants_multiple() const noexcept { return thread_level_ >= MPI_THREAD_MULTIPLE; }
  /// The granted level as MPI spells it, "MPI_THREAD_MULTIPLE".
  [[nodiscard]] std::string_view thread_level_name() const noexcept;

 private:
  int thread_level_ = MPI_THREAD_SINGLE;
};

/// The library's name and version, its first line. Needs no MpiEnvironment.
[[nodiscard]] std::string mpi_library_version();

/// Ends all ranks of the job at once with `exit_status`. For main, and for nobody below it.
[[noreturn]] void abort_all_ranks(int exit_status);

/// For a rank that gives up waiting and will abort the job: tells every other rank so, and listens for
/// `listen_s` seconds to those that give up as well. Who stays silent is who the others wait for: a rank that
/// was stopped, has died or computes for ever. Uses the world communicator, on which nothing else travels; on
/// a second thread it needs MPI_THREAD_MULTIPLE. Never throws: where MPI fails, nobody more is heard.
/// @return the silent world ranks, ascending
[[nodiscard]] std::vector<int> silent_ranks(double listen_s) noexcept;

/// Owns one communicator and frees it. Move-only: one handle, one owner.
class MpiCommunicator {
 public:
  /// Collective over `parent`. A duplicate, so that our messages never meet the caller's.
  /// @throws MpiError if MPI_Comm_dup fails
  [[nodiscard]] static MpiCommunicator duplicate(MPI_Comm parent);

  MpiCommunicator(MpiCommunicator&& other) noexcept : handle_{std::exchange(other.handle_, MPI_COMM_NULL)} {}
  MpiCommunicator& operator=(MpiCommunicator&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  /// Collective, except while an exception unwinds: then the communicator is left to the abort.
  ~MpiCommunicator();

  /// Collective. Ranks with the same `color` (at least 0) form one communicator, ordered by `key`.
  /// @throws MpiError if MPI_Comm_split fails
  [[nodiscard]] MpiCommunicator split(int color, int key) const;

  /// Collective. The ranks that can share memory with this one (MPI_COMM_TYPE_SHARED: one host), in order.
  /// @throws MpiError if MPI_Comm_split_type fails
  [[nodiscard]] MpiCommunicator split_by_host() const;

  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;
  [[nodiscard]] MPI_Comm get() const noexcept { return handle_; }

 private:
  explicit MpiCommunicator(MPI_Comm owned) noexcept : handle_{owned} {}
  MPI_Comm handle_ = MPI_COMM_NULL;
};

}  // namespace hcp
