/// The host as the carrier of one rank's messages between devices.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/stream.hpp"
#include "src/comm/peers.hpp"
#include "src/comm/pinned_pool.hpp"
#include "src/comm/staged_message.hpp"
#include "src/comm/staged_transport.hpp"
#include "topology/mpi_environment.hpp"

namespace hcp {

/// What the carrier knows of one transport.
struct StagedEnd {
  MpiCommunicator comm;
  Peers peers;
  double timeout_s;
  std::map<std::pair<int, int>, MessageOrder> sends;  ///< by (peer, tag)
  std::map<std::pair<int, int>, MessageOrder> receives;
};

/// Moves the open sets of all transports whenever it is called, the oldest first. Nothing moves at other
/// times but what devices and MPI were asked for.
class StagedCarrier {
 public:
  /// As StagedTransports.
  StagedCarrier(std::shared_ptr<cuda::Stream> compute, DevicePath path, std::int64_t chunk_bytes)
      : compute_{std::move(compute)}, path_{path}, chunk_bytes_{chunk_bytes} {}
  StagedCarrier(const StagedCarrier&) = delete;
  StagedCarrier& operator=(const StagedCarrier&) = delete;

  /// As Transport::post, of messages that were checked. @return number of the set, for the others
  [[nodiscard]] int open(StagedEnd& end, const MessageSet& messages);
  /// As Ticket::wait and Ticket::finish.
  void wait(int id);
  void finish(int id);
  /// Forgets the sets of a transport that goes, finished or not. Waits for nothing.
  void close(const StagedEnd& end) noexcept;

 private:
  /// Streams and events of one set at a time. Of its own, so that no set waits for what another one waits
  /// for.
  struct Lanes {
    cuda::Stream outward;  ///< from the device
    cuda::Stream inward;
    cuda::Event begun{cuda::Event::Kind::order};    ///< the compute stream has come to the set
    cuda::Event arrived{cuda::Event::Kind::order};  ///< all receives are on the device
  };
  using Messages = std::vector<std::unique_ptr<StagedMessage>>;  // those that are not finished
  struct OpenSet {
    StagedEnd* end;
    std::string what;
    std::unique_ptr<Lanes> lanes;
    Messages receives;
    Messages sends;
    std::optional<double> begun_s;  ///< when the host saw that the compute stream had come to it
    bool waited = false;
  };

  [[nodiscard]] std::unique_ptr<Lanes> take_lanes();
  [[nodiscard]] std::unique_ptr<StagedMessage> make(Direction direction, OpenSet& set,
                                                    const Message& message);
  /// The time of a pass does not depend on how many sets came before.
  void forget_finished_sets();
  void advance();
  void advance(OpenSet& set) const;
  /// Carries all sets until each message of this one has reached what is asked for.
  /// @throws TransportTimeout
  void carry(OpenSet& set, bool (StagedMessage::*reached)() const);
  /// Whether the compute stream has come to the set.
  static bool has_begun(OpenSet& set);
  void throw_timeout(const OpenSet& set) const;

  std::shared_ptr<cuda::Stream> compute_;
  DevicePath path_;
  std::int64_t chunk_bytes_;
  PinnedPool pool_;
  std::vector<std::unique_ptr<Lanes>> idle_lanes_;
  std::map<int, OpenSet> sets_;  ///< in the order of their posts
  int next_id_ = 0;
};

}  // namespace hcp
