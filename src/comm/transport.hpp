/// Bytes between the ranks of one communicator: the seam between the exchange and what carries it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/tensor.hpp"

namespace hcp {

/// One message, gathered from or scattered to several places; the parts travel in order as one stream of
/// bytes.
struct Message {
  int peer = 0;  ///< rank in the transport's communicator
  int tag = 0;   ///< messages between two ranks with one tag arrive in the order posted
  std::vector<std::span<std::byte>> parts;  ///< read when sending, written when receiving
  [[nodiscard]] std::int64_t bytes() const;
};

/// Messages that are started together. Both ends list only messages with at least one byte.
struct MessageSet {
  std::vector<Message> sends;
  std::vector<Message> receives;
  std::string
      what;  ///< where in the run this is, for the message of a timeout: "layer 0, forward, level 1, step 3"
};

/// A set of messages did not finish in time. The text names this rank and the peers that are missing, as
/// world ranks, and MessageSet::what. The transfers stay open: the job has to end.
class TransportTimeout : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Transport;

/// A started set of messages. Its buffers belong to the transport until wait(); dropping it un-waited aborts,
/// except while an exception unwinds (the other ranks may never answer then).
class [[nodiscard]] Ticket {
 public:
  Ticket(Transport& transport, int id) : transport_{&transport}, id_{id} {}
  Ticket(Ticket&& other) noexcept;
  Ticket& operator=(Ticket&& other) noexcept;
  ~Ticket();
  /// Host memory: returns when every message of the set has arrived or left. Once per ticket.
  void wait();

 private:
  Transport* transport_ = nullptr;
  int id_ = 0;
};

/// What a transport really posted to one peer under one tag.
struct SentCount {
  int peer = 0;
  int tag = 0;
  std::int64_t bytes = 0;
  std::int64_t messages = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  [[nodiscard]] virtual MemorySpace memory_space() const = 0;

  /// Starts all messages of the set; never blocks on a peer. Ticket::wait throws TransportTimeout if the set
  /// does not finish in time, and MpiError (or the back end's own error) if the library fails.
  /// @throws std::logic_error for a message that is empty, to this rank itself or to no rank at all
  virtual Ticket post(const MessageSet& messages) = 0;

  /// Sent messages since construction or the last reset, ascending by (peer, tag).
  [[nodiscard]] virtual std::vector<SentCount> sent() const = 0;
  virtual void reset_counts() = 0;

 protected:
  friend class Ticket;
  virtual void wait(int ticket) = 0;
};

}  // namespace hcp
