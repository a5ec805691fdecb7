/// Messages between the memories of devices by MPI, each moved on whenever the host has time for it.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/cuda/stream.hpp"
#include "src/comm/peers.hpp"
#include "src/comm/pinned_pool.hpp"
#include "src/comm/transport.hpp"

namespace hcp {

/// The messages between two ranks under one tag in one direction: MPI matches them by order alone, so each
/// hands its chunks to MPI when those before it have done so.
struct MessageOrder {
  std::int64_t posted = 0;
  std::int64_t handed_over = 0;
};

/// One place in a MessageOrder.
class Turn {
 public:
  explicit Turn(MessageOrder& order) : order_{&order}, number_{order.posted++} {}
  [[nodiscard]] bool has_come() const { return order_->handed_over == number_; }
  /// Once, when it has come.
  void pass() { ++order_->handed_over; }

 private:
  MessageOrder* order_;
  std::int64_t number_;
};

/// Between whom a message travels.
struct StagedRoute {
  const Peers& peers;
  MPI_Comm comm;
  int peer;
  int tag;
  MessageOrder& order;
  const std::string& what;  ///< MessageSet::what, of a set that outlives the message
};

/// Destroyed before it is finished only while an exception unwinds.
class StagedMessage {
 public:
  explicit StagedMessage(const StagedRoute& route) : route_{route}, turn_{route.order} {}
  StagedMessage(const StagedMessage&) = delete;
  StagedMessage& operator=(const StagedMessage&) = delete;
  virtual ~StagedMessage() = default;

  [[nodiscard]] int peer() const { return route_.peer; }
  /// Does what is to be done now. Waits for nobody. @throws MpiError, std::runtime_error if CUDA fails
  virtual void advance() = 0;
  /// The host has nothing left to do that work on the compute stream would have to wait for: a received
  /// message is on its way to the device, a sent one has left the device and is with MPI.
  [[nodiscard]] virtual bool is_handed_over() const = 0;
  /// It has arrived, or its receiver has taken it.
  [[nodiscard]] virtual bool is_finished() const = 0;

 protected:
  StagedRoute route_;
  Turn turn_;
};

enum class Direction { send, receive };

/// Through pinned memory, in chunks.
/// @param stream  for copies from (send) or to (receive) the device, after all that may use the parts now
/// @param chunk_bytes  the same at both ends, less than 2 GiB
[[nodiscard]] std::unique_ptr<StagedMessage> make_pinned_message(Direction direction,
                                                                 const StagedRoute& route,
                                                                 const Message& message, cuda::Stream& stream,
                                                                 PinnedPool& pool, std::int64_t chunk_bytes);

/// By an MPI that takes pointers to the device. To be advanced from when the parts are its own, and handed
/// over when it is finished.
[[nodiscard]] std::unique_ptr<StagedMessage> make_direct_message(Direction direction,
                                                                 const StagedRoute& route,
                                                                 const Message& message);

}  // namespace hcp
