/// How a message of any size and any number of parts is told to MPI, whose counts are int.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace hcp {

inline constexpr std::int64_t mpi_block_bytes = std::int64_t{1} << 20;

/// bytes = blocks * mpi_block_bytes + tail_bytes, with 0 <= tail_bytes < mpi_block_bytes.
struct MpiBlocks {
  int blocks = 0;
  int tail_bytes = 0;
  bool operator==(const MpiBlocks&) const = default;
};

/// @throws std::length_error from 2 PiB on, where the number of blocks is no int; or for a negative size
[[nodiscard]] MpiBlocks split_into_mpi_blocks(std::int64_t bytes);

/// Buffer, count and datatype of one MPI_Isend or MPI_Irecv: plain bytes where there is one part of less than
/// 2 GiB, else one element of a committed datatype made of the parts' absolute addresses.
class MpiMessageType {
 public:
  /// @throws MpiError; std::length_error if a part is 2 PiB or larger
  explicit MpiMessageType(std::span<const std::span<std::byte>> parts);
  MpiMessageType(const MpiMessageType&) = delete;
  MpiMessageType& operator=(const MpiMessageType&) = delete;
  /// Transfers that were started with the datatype finish all the same.
  ~MpiMessageType();

  [[nodiscard]] void* buffer() const noexcept { return buffer_; }
  [[nodiscard]] int count() const noexcept { return count_; }
  [[nodiscard]] MPI_Datatype get() const noexcept { return datatype_; }

 private:
  void* buffer_ = nullptr;
  int count_ = 0;
  MPI_Datatype datatype_ = MPI_BYTE;
};

}  // namespace hcp
