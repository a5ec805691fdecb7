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
  /// Read when sending, written when receiving. Memory of the transport's own kind; device memory: both ends
  /// cut a message into as many parts of the same sizes.
  std::vector<std::span<std::byte>> parts;
  [[nodiscard]] std::int64_t bytes() const;
};

/// What the messages of a set are together.
enum class Collective : std::uint8_t {
  none,
  /// Every rank sends the same parts to every other rank. Part p of all receives, in the order of the ranks
  /// and with room for this rank's own part between them, lies in one piece. The transport fills that room,
  /// too, with what this rank sends.
  all_gather,
};

/// Messages that are started together. Both ends list only messages with at least one byte.
struct MessageSet {
  std::vector<Message> sends;
  std::vector<Message> receives;
  Collective collective = Collective::none;
  std::string
      what;  ///< where in the run this is, for the message of a timeout: "layer 0, forward, level 1, step 3"
};

/// The room for this rank's own parts between what it receives in an all_gather.
/// @param rank  this one, in the transport's communicator
[[nodiscard]] std::vector<std::span<std::byte>> own_room(const MessageSet& messages, int rank);
/// Fills it, in host memory; does nothing for sets that are no all_gather.
void fill_own_room(const MessageSet& messages, int rank);

/// A set of messages did not finish in time. The text names this rank and the peers that are missing, as
/// world ranks, and MessageSet::what. The transfers stay open: the job has to end.
class TransportTimeout : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Transport;

/// A started set of messages. Its buffers belong to the transport until wait(); dropping it un-waited aborts,
/// except while an exception unwinds (the other ranks may never answer then).
///
/// Device memory: buffers belong to whatever the device's stream was asked for before post(), and again to
/// what it is asked for after wait(); the host waits for nothing but where it has to carry messages itself.
class [[nodiscard]] Ticket {
 public:
  Ticket(Transport& transport, int id) : transport_{&transport}, id_{id} {}
  Ticket(Ticket&& other) noexcept;
  Ticket& operator=(Ticket&& other) noexcept;
  ~Ticket();
  /// Host memory: returns when every message of the set has arrived or left. Device memory: what the stream
  /// is asked for from now on begins when they have. Once per ticket.
  void wait();
  /// After wait(): returns when every message of the set has arrived or left, wherever it lies. For the end
  /// of a pass, in the order of the posts, so that a peer that is missing is found in the set that misses it.
  void finish();

 private:
  Transport* transport_ = nullptr;
  int id_ = 0;
  bool waited_ = false;
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

  /// Starts all messages of the set; never blocks on a peer. Ticket::wait or finish throws TransportTimeout
  /// if the set does not finish in time (device memory: from when its stream has come to it), and MpiError
  /// (or the back end's own error) if the library fails.
  /// @throws std::logic_error for a message that is empty, to this rank itself or to no rank at all
  virtual Ticket post(const MessageSet& messages) = 0;

  /// Sent messages since construction or the last reset, ascending by (peer, tag).
  [[nodiscard]] virtual std::vector<SentCount> sent() const = 0;
  virtual void reset_counts() = 0;

 protected:
  friend class Ticket;
  virtual void wait(int ticket) = 0;
  /// Where wait() returns before the messages have arrived.
  virtual void finish(int /*ticket*/) {}
};

}  // namespace hcp
