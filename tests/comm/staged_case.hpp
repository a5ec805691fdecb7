/// What tests of the staged transport have in common.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "src/comm/staged_transport.hpp"
#include "tests/comm/device_case.hpp"
#include "topology/mpi_environment.hpp"

namespace hcp {

/// A rank with a device, and transports that cut messages into small chunks.
class StagedCase : public testing::Test, protected DeviceRank {
 protected:
  static constexpr double patience_s = 20;
  static constexpr std::int64_t chunk_bytes = 4096;

  /// Long and short messages between pairs of ranks in sets that are open together and waited for backwards.
  void exchange_under_one_tag(Transport& transport);

  [[nodiscard]] std::unique_ptr<Transport> make_transport(const MpiCommunicator& comm) {
    return transports.make(comm, patience_s);
  }

  StagedTransports transports{device.stream, DevicePath::pinned, chunk_bytes};
};

}  // namespace hcp
