#include "src/comm/mpi_message_type.hpp"

#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "topology/mpi_environment.hpp"

namespace hcp {
namespace {

constexpr std::int64_t largest_count = std::numeric_limits<int>::max();

MPI_Datatype parts_type(std::span<const std::span<std::byte>> parts) {
  MPI_Datatype block = MPI_DATATYPE_NULL;
  check_mpi(MPI_Type_contiguous(static_cast<int>(mpi_block_bytes), MPI_BYTE, &block), "MPI_Type_contiguous");

  std::vector<int> lengths;
  std::vector<MPI_Aint> addresses;
  std::vector<MPI_Datatype> types;
  const auto add = [&](int length, std::byte* begin, MPI_Datatype type) {
    if (length == 0) return;
    MPI_Aint address = 0;
    check_mpi(MPI_Get_address(begin, &address), "MPI_Get_address");
    lengths.push_back(length);
    addresses.push_back(address);
    types.push_back(type);
  };
  for (const std::span<std::byte> part : parts) {
    const MpiBlocks split = split_into_mpi_blocks(static_cast<std::int64_t>(part.size()));
    add(split.blocks, part.data(), block);
    add(split.tail_bytes, part.data() + split.blocks * mpi_block_bytes, MPI_BYTE);
  }

  MPI_Datatype whole = MPI_DATATYPE_NULL;
  check_mpi(MPI_Type_create_struct(static_cast<int>(lengths.size()), lengths.data(), addresses.data(),
                                   types.data(), &whole),
            "MPI_Type_create_struct");
  check_mpi(MPI_Type_commit(&whole), "MPI_Type_commit");
  check_mpi(MPI_Type_free(&block), "MPI_Type_free");
  return whole;
}

}  // namespace

MpiBlocks split_into_mpi_blocks(std::int64_t bytes) {
  const std::int64_t blocks = bytes / mpi_block_bytes;
  if (bytes < 0 || blocks > largest_count) {
    throw std::length_error{"a message part of " + std::to_string(bytes) + " B cannot be told to MPI"};
  }
  return {.blocks = static_cast<int>(blocks), .tail_bytes = static_cast<int>(bytes % mpi_block_bytes)};
}

MpiMessageType::MpiMessageType(std::span<const std::span<std::byte>> parts) {
  if (parts.size() == 1 && static_cast<std::int64_t>(parts.front().size()) <= largest_count) {
    buffer_ = parts.front().data();
    count_ = static_cast<int>(parts.front().size());
  } else {
    buffer_ = MPI_BOTTOM;
    count_ = 1;
    datatype_ = parts_type(parts);
  }
}

MpiMessageType::~MpiMessageType() {
  if (datatype_ != MPI_BYTE) MPI_Type_free(&datatype_);
}

}  // namespace hcp
