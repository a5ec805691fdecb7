#include "topology/mpi_environment.hpp"

#include <array>
#include <chrono>
#include <exception>
#include <set>
#include <string>
#include <thread>

namespace hcp {

namespace {

std::string mpi_text(int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) {
    return "error code " + std::to_string(code);
  }
  return {text.data(), static_cast<std::size_t>(length)};
}

std::string world_rank_text() {
  int initialized = 0;
  int finalized = 0;
  int rank = 0;
  if (MPI_Initialized(&initialized) != MPI_SUCCESS || MPI_Finalized(&finalized) != MPI_SUCCESS ||
      initialized == 0 || finalized != 0 || MPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS) {
    return "unknown rank";
  }
  return "rank " + std::to_string(rank);
}

}  // namespace

MpiError::MpiError(int code, std::string_view call, const std::source_location& where)
    : std::runtime_error{std::string{call} + " failed on " + world_rank_text() + " at " + where.file_name() +
                         ":" + std::to_string(where.line()) + ": " + mpi_text(code)},
      code_{code} {}

MpiEnvironment::MpiEnvironment(int& argc, char**& argv) {
  check_mpi(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &thread_level_), "MPI_Init_thread");
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  // From MPI 4 on, errors that belong to no communicator are raised on this one.
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

MpiEnvironment::~MpiEnvironment() {
  if (std::uncaught_exceptions() == 0) {
    MPI_Finalize();
  }
}

int MpiEnvironment::world_rank() const {
  int rank = 0;
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
  return rank;
}

int MpiEnvironment::world_size() const {
  int size = 0;
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  return size;
}

std::string_view MpiEnvironment::thread_level_name() const noexcept {
  switch (thread_level_) {
    case MPI_THREAD_SINGLE:
      return "MPI_THREAD_SINGLE";
    case MPI_THREAD_FUNNELED:
      return "MPI_THREAD_FUNNELED";
    case MPI_THREAD_SERIALIZED:
      return "MPI_THREAD_SERIALIZED";
    default:
      return "MPI_THREAD_MULTIPLE";
  }
}

std::string mpi_library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  check_mpi(MPI_Get_library_version(text.data(), &length), "MPI_Get_library_version");
  // Open MPI 4.1 counts the closing zero in the length.
  const std::string version{text.data()};
  return version.substr(0, version.find('\n'));
}

void abort_all_ranks(int exit_status) {
  MPI_Abort(MPI_COMM_WORLD, exit_status);
  std::terminate();  // MPI_Abort does not return; its declaration does not say so
}

std::vector<int> silent_ranks(double listen_s) noexcept {
  constexpr int giving_up = 4711;  // a tag
  constexpr std::chrono::milliseconds pause{1};
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>{listen_s};
  int me = 0;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::set<int> silent;
  for (int rank = 0; rank < size; ++rank) {
    if (rank == me) continue;
    silent.insert(rank);
    MPI_Request sending = MPI_REQUEST_NULL;
    if (MPI_Isend(nullptr, 0, MPI_BYTE, rank, giving_up, MPI_COMM_WORLD, &sending) == MPI_SUCCESS) {
      MPI_Request_free(&sending);
    }
  }
  while (!silent.empty() && std::chrono::steady_clock::now() < deadline) {
    int found = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    const int code = MPI_Improbe(MPI_ANY_SOURCE, giving_up, MPI_COMM_WORLD, &found, &message, &status);
    if (code != MPI_SUCCESS) break;
    if (found == 0) {
      std::this_thread::sleep_for(pause);
    } else if (MPI_Mrecv(nullptr, 0, MPI_BYTE, &message, MPI_STATUS_IGNORE) == MPI_SUCCESS) {
      silent.erase(status.MPI_SOURCE);
    }
  }
  return {silent.begin(), silent.end()};
}

MpiCommunicator MpiCommunicator::duplicate(MPI_Comm parent) {
  MPI_Comm copy = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(parent, &copy), "MPI_Comm_dup");
  return MpiCommunicator{copy};
}

MpiCommunicator::~MpiCommunicator() {
  // Freeing is collective. While unwinding, the other ranks will not join in, and main aborts the job.
  if (handle_ != MPI_COMM_NULL && std::uncaught_exceptions() == 0) {
    MPI_Comm_free(&handle_);
  }
}

MpiCommunicator MpiCommunicator::split(int color, int key) const {
  MPI_Comm child = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(handle_, color, key, &child), "MPI_Comm_split");
  return MpiCommunicator{child};
}

MpiCommunicator MpiCommunicator::split_by_host() const {
  MPI_Comm child = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(handle_, MPI_COMM_TYPE_SHARED, rank(), MPI_INFO_NULL, &child),
            "MPI_Comm_split_type");
  return MpiCommunicator{child};
}

int MpiCommunicator::rank() const {
  int rank = 0;
  check_mpi(MPI_Comm_rank(handle_, &rank), "MPI_Comm_rank");
  return rank;
}

int MpiCommunicator::size() const {
  int size = 0;
  check_mpi(MPI_Comm_size(handle_, &size), "MPI_Comm_size");
  return size;
}

}  // namespace hcp
