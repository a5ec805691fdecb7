#include "topology/mpi_collectives.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace hcp {

namespace {

MPI_Op mpi_op(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return MPI_SUM;
    case Reduction::min:
      return MPI_MIN;
    case Reduction::max:
      return MPI_MAX;
  }
  throw std::logic_error{"unknown reduction"};
}

int mpi_count(std::int64_t count) {
  if (count > std::numeric_limits<int>::max()) {
    throw std::length_error{"a collective of " + std::to_string(count) + " elements exceeds MPI's int count"};
  }
  return static_cast<int>(count);
}

template <typename T>
void all_reduce_as(const MpiCommunicator& comm, MPI_Datatype type, Reduction reduction, std::span<T> values) {
  check_mpi(MPI_Allreduce(MPI_IN_PLACE, values.data(), mpi_count(std::ssize(values)), type, mpi_op(reduction),
                          comm.get()),
            "MPI_Allreduce");
}

/// Byte counts of all ranks and where each rank's bytes start. Known to every rank, so that all of them
/// refuse too much together.
struct Extents {
  std::vector<int> counts;
  std::vector<int> offsets;
  int total = 0;
};

Extents exchange_extents(const MpiCommunicator& comm, std::size_t my_bytes) {
  const auto mine = static_cast<std::int64_t>(my_bytes);
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(comm.size()));
  check_mpi(MPI_Allgather(&mine, 1, MPI_INT64_T, bytes.data(), 1, MPI_INT64_T, comm.get()), "MPI_Allgather");
  Extents extents;
  extents.total = mpi_count(std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}));
  int offset = 0;
  for (const std::int64_t count : bytes) {
    extents.counts.push_back(static_cast<int>(count));
    extents.offsets.push_back(offset);
    offset += static_cast<int>(count);
  }
  return extents;
}

template <typename T>
std::vector<std::vector<T>> cut_by_rank(std::span<const T> all, const Extents& extents) {
  std::vector<std::vector<T>> by_rank;
  for (std::size_t rank = 0; rank < extents.counts.size(); ++rank) {
    const auto part = all.subspan(static_cast<std::size_t>(extents.offsets[rank]) / sizeof(T),
                                  static_cast<std::size_t>(extents.counts[rank]) / sizeof(T));
    by_rank.emplace_back(part.begin(), part.end());
  }
  return by_rank;
}

template <typename T>
std::vector<std::vector<T>> all_gather_as(const MpiCommunicator& comm, std::span<const T> mine) {
  const Extents extents = exchange_extents(comm, mine.size_bytes());
  std::vector<T> all(static_cast<std::size_t>(extents.total) / sizeof(T));
  check_mpi(MPI_Allgatherv(mine.data(), static_cast<int>(mine.size_bytes()), MPI_BYTE, all.data(),
                           extents.counts.data(), extents.offsets.data(), MPI_BYTE, comm.get()),
            "MPI_Allgatherv");
  return cut_by_rank<T>(all, extents);
}

}  // namespace

void barrier(const MpiCommunicator& comm) {
  check_mpi(MPI_Barrier(comm.get()), "MPI_Barrier");
}

void all_reduce(const MpiCommunicator& comm, Reduction reduction, std::span<double> values) {
  all_reduce_as(comm, MPI_DOUBLE, reduction, values);
}

void all_reduce(const MpiCommunicator& comm, Reduction reduction, std::span<std::int64_t> values) {
  all_reduce_as(comm, MPI_INT64_T, reduction, values);
}

double all_reduce(const MpiCommunicator& comm, Reduction reduction, double value) {
  all_reduce(comm, reduction, std::span{&value, 1});
  return value;
}

std::int64_t all_reduce(const MpiCommunicator& comm, Reduction reduction, std::int64_t value) {
  all_reduce(comm, reduction, std::span{&value, 1});
  return value;
}

void visit_by_rank(const MpiCommunicator& comm, std::span<const std::byte> mine, std::int64_t piece_bytes,
                   const std::function<void(int rank, std::span<const std::byte> piece)>& at_root) {
  if (piece_bytes < 1 || piece_bytes > std::numeric_limits<int>::max()) {
    throw std::invalid_argument{"pieces of " + std::to_string(piece_bytes) +
                                " bytes; they must have from 1 to 2^31 - 1"};
  }
  const auto piece = static_cast<std::size_t>(piece_bytes);
  const bool is_root = comm.rank() == 0;
  const auto my_bytes = static_cast<std::int64_t>(mine.size());
  std::vector<std::int64_t> bytes(is_root ? static_cast<std::size_t>(comm.size()) : 0);
  check_mpi(MPI_Gather(&my_bytes, 1, MPI_INT64_T, bytes.data(), 1, MPI_INT64_T, 0, comm.get()), "MPI_Gather");
  constexpr int tag = 1;
  if (!is_root) {
    for (; !mine.empty(); mine = mine.subspan(std::min(piece, mine.size()))) {
      const auto count = static_cast<int>(std::min(piece, mine.size()));
      check_mpi(MPI_Send(mine.data(), count, MPI_BYTE, 0, tag, comm.get()), "MPI_Send");
    }
    return;
  }
  for (; !mine.empty(); mine = mine.subspan(std::min(piece, mine.size()))) {
    at_root(0, mine.first(std::min(piece, mine.size())));
  }
  std::vector<std::byte> arriving;
  for (int rank = 1; rank < comm.size(); ++rank) {
    std::int64_t left = bytes[static_cast<std::size_t>(rank)];
    while (left > 0) {
      arriving.resize(static_cast<std::size_t>(std::min(piece_bytes, left)));
      check_mpi(MPI_Recv(arriving.data(), static_cast<int>(arriving.size()), MPI_BYTE, rank, tag, comm.get(),
                         MPI_STATUS_IGNORE),
                "MPI_Recv");
      at_root(rank, arriving);
      left -= std::ssize(arriving);
    }
  }
}

std::vector<std::vector<double>> all_gather(const MpiCommunicator& comm, std::span<const double> mine) {
  return all_gather_as(comm, mine);
}

std::vector<std::vector<std::byte>> all_gather(const MpiCommunicator& comm, std::span<const std::byte> mine) {
  return all_gather_as(comm, mine);
}

std::vector<std::string> all_gather(const MpiCommunicator& comm, std::string_view mine) {
  std::vector<std::string> texts;
  for (const std::vector<char>& text : all_gather_as(comm, std::span<const char>{mine})) {
    texts.emplace_back(text.begin(), text.end());
  }
  return texts;
}

std::string broadcast(const MpiCommunicator& comm, std::string_view text, int root) {
  const bool is_root = comm.rank() == root;
  std::int64_t length = std::ssize(text);
  check_mpi(MPI_Bcast(&length, 1, MPI_INT64_T, root, comm.get()), "MPI_Bcast");
  std::string shared = is_root ? std::string{text} : std::string(static_cast<std::size_t>(length), '\0');
  check_mpi(MPI_Bcast(shared.data(), mpi_count(length), MPI_CHAR, root, comm.get()), "MPI_Bcast");
  return shared;
}

}  // namespace hcp
