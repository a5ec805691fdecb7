/// What tests of transports between devices have in common.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/back_end.hpp"
#include "src/comm/transport.hpp"
#include "topology/mpi_environment.hpp"

namespace hcp {

/// Memory of a device.
class DeviceBytes {
 public:
  /// Uninitialised.
  DeviceBytes(MemorySource& memory, std::size_t bytes);
  DeviceBytes(MemorySource& memory, const std::vector<std::byte>& values);

  [[nodiscard]] std::span<std::byte> span() const {
    return {buffer_.data(), static_cast<std::size_t>(buffer_.bytes())};
  }
  [[nodiscard]] float* floats() const { return reinterpret_cast<float*>(buffer_.data()); }
  /// After all that the compute stream was asked for.
  [[nodiscard]] std::vector<std::byte> values() const;

 private:
  MemorySource* memory_;
  Buffer buffer_;
};

/// A rank with a device of its own.
struct DeviceRank {
  DeviceRank();

  /// On the compute stream.
  void copy(const DeviceBytes& from, const DeviceBytes& to);
  void fill(const DeviceBytes& memory, float value);

  /// Once round a ring, with buffers that change hands without the host: made by kernels right before each
  /// post, used by kernels right after each wait.
  /// @return whether each rank has got its own numbers back
  [[nodiscard]] bool goes_round(Transport& transport, std::size_t floats);

  MpiCommunicator world = MpiCommunicator::duplicate(MPI_COMM_WORLD);
  BackEnd device;
};

/// Posts, waits and finishes.
void carry_out(Transport& transport, const MessageSet& messages);

/// Every rank sends `bytes` to the next one and receives as many from the one before.
void exchange_with_neighbours(Transport& transport, MemorySource& memory, std::size_t bytes, int tag);

/// Every rank exchanges messages of different sizes, each of three parts with gaps, with all others.
/// @return bytes that this rank sent, by peer
std::vector<std::size_t> exchange_with_all(Transport& transport, MemorySource& memory);

/// Expects std::logic_error for messages to this rank itself, to no rank at all, and empty ones.
void expect_refusals(Transport& transport, MemorySource& memory);

}  // namespace hcp
