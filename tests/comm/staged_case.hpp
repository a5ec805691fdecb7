/// What tests of the staged transport have in common.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/back_end.hpp"
#include "src/comm/staged_transport.hpp"
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

/// A rank with a device, and transports that cut messages into small chunks.
class StagedCase : public testing::Test {
 protected:
  static constexpr double patience_s = 20;
  static constexpr std::int64_t chunk_bytes = 4096;

  StagedCase();

  /// Once round a ring, with buffers that change hands without the host: made by kernels right before each
  /// post, used by kernels right after each wait.
  void send_once_round(Transport& transport, std::size_t floats);
  /// Long and short messages between pairs of ranks in sets that are open together and waited for backwards.
  void exchange_under_one_tag(Transport& transport);

  /// On the compute stream.
  void copy(const DeviceBytes& from, const DeviceBytes& to);
  void fill(const DeviceBytes& memory, float value);

  [[nodiscard]] std::unique_ptr<Transport> make_transport(const MpiCommunicator& comm) {
    return transports.make(comm, patience_s);
  }

  MpiCommunicator world = MpiCommunicator::duplicate(MPI_COMM_WORLD);
  BackEnd device;
  StagedTransports transports;
};

/// Posts, waits and finishes.
void carry_out(Transport& transport, const MessageSet& messages);

/// Every rank sends `bytes` to the next one and receives as many from the one before.
void exchange_with_neighbours(Transport& transport, MemorySource& memory, std::size_t bytes, int tag);

/// Every rank exchanges messages of different sizes, each of three parts with gaps, with all others.
/// @return bytes that this rank sent, by peer
std::vector<std::size_t> exchange_with_all(Transport& transport, MemorySource& memory);

}  // namespace hcp
