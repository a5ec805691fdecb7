#include <algorithm>
#include <span>
#include <vector>

#include "src/comm/staged_message.hpp"

namespace hcp {
namespace {

/// A part travels as plain bytes, of which MPI counts fewer than 2 GiB.
constexpr std::size_t most_bytes = std::size_t{1} << 30;

/// Parts one by one: what MPI does with datatypes of scattered device memory is slow. Both ends have the same
/// parts.
class DirectMessage final : public StagedMessage {
 public:
  DirectMessage(Direction direction, const StagedRoute& route, const Message& message)
      : StagedMessage{route}, direction_{direction} {
    for (std::span<std::byte> part : message.parts) {
      while (!part.empty()) {
        const std::size_t bytes = std::min(part.size(), most_bytes);
        pieces_.push_back({.place = part.first(bytes)});
        part = part.subspan(bytes);
      }
    }
  }

  void advance() override {
    if (turn_.has_come()) {
      for (Piece& piece : pieces_) start(piece);
      turn_.pass();
      started_ = true;
    }
    while (started_ && !is_finished() && has_finished(pieces_[finished_])) ++finished_;
  }

  bool is_handed_over() const override { return is_finished(); }
  bool is_finished() const override { return finished_ == pieces_.size(); }

 private:
  struct Piece {
    std::span<std::byte> place;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  void start(Piece& piece) const {
    const auto bytes = static_cast<int>(piece.place.size());
    if (direction_ == Direction::send) {
      check_mpi(MPI_Isend(piece.place.data(), bytes, MPI_BYTE, route_.peer, route_.tag, route_.comm,
                          &piece.request),
                "MPI_Isend");
    } else {
      check_mpi(MPI_Irecv(piece.place.data(), bytes, MPI_BYTE, route_.peer, route_.tag, route_.comm,
                          &piece.request),
                "MPI_Irecv");
    }
  }

  bool has_finished(Piece& piece) const {
    int finished = 0;
    MPI_Status status{};
    check_mpi(MPI_Test(&piece.request, &finished, &status), "MPI_Test");
    if (finished == 0) return false;
    if (direction_ == Direction::receive) {
      route_.peers.check_received(status, route_.peer, std::ssize(piece.place), route_.what);
    }
    return true;
  }

  Direction direction_;
  std::vector<Piece> pieces_;
  bool started_ = false;
  std::size_t finished_ = 0;  ///< of the pieces, the first ones
};

}  // namespace

std::unique_ptr<StagedMessage> make_direct_message(Direction direction, const StagedRoute& route,
                                                   const Message& message) {
  return std::make_unique<DirectMessage>(direction, route, message);
}

}  // namespace hcp
