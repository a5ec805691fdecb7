/// What the program asks of NCCL, and the messages that it comes to.
#pragma once

#include <nccl.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "tests/software_gpu/nccl/communicator.hpp"
#include "tests/software_gpu/nccl/exchange.hpp"

namespace hcp::software_gpu {

/// One call of ncclSend, ncclRecv or a collective.
struct Request {
  std::shared_ptr<Communicator> communicator{};
  cudaStream_t stream = nullptr;
  Function function = Function::point_to_point;
  const std::byte* source = nullptr;  ///< nullptr for ncclRecv
  std::byte* target = nullptr;        ///< nullptr for ncclSend
  std::size_t bytes = 0;              ///< of one rank's part
  ncclDataType_t type = ncclInt8;
  int peer = 0;  ///< or the root
};

/// The whole buffers of a call on this rank; empty if it has none.
[[nodiscard]] std::span<const std::byte> source_of(const Request& request);
[[nodiscard]] std::span<std::byte> target_of(const Request& request);

/// A request as messages. Their bytes are what the double really carries: collectives send each part straight
/// to whoever needs it.
struct Messages {
  struct Send {
    MessageEnd end;
    std::span<const std::byte> bytes;
  };
  std::vector<Send> sends;
  std::vector<MessageEnd> receives;
  std::vector<std::span<const std::byte>> reads;
  std::vector<std::span<std::byte>> writes;  ///< not what lies in place already
  /// Of `reads`, when the request begins. nullptr if there is nothing to keep.
  std::function<void()> begin;
  /// Brings what has arrived, by receive, to `writes`.
  std::function<void(const std::vector<std::span<const std::byte>>& arrived)> finish;
};
[[nodiscard]] Messages messages_of(const Request& request);

}  // namespace hcp::software_gpu
