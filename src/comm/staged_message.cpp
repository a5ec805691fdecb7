#include "src/comm/staged_message.hpp"

#include <cuda_runtime_api.h>

#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "kernels/cuda/check.hpp"
#include "src/comm/chunk_cutter.hpp"

namespace hcp {
namespace {

using Places = std::vector<std::span<std::byte>>;

/// Of one message: one that is copied, one on the network and one to spare at either end of both, so that
/// neither has to wait for the host to look. More would only be more pinned memory.
constexpr std::size_t chunks_in_flight = 4;

int bytes_of(const Places& places) {
  std::size_t bytes = 0;
  for (const std::span<std::byte> place : places) bytes += place.size();
  return static_cast<int>(bytes);
}

struct Chunk {
  Places places;  ///< on the device
  PinnedPool::Block* block = nullptr;
  MPI_Request request = MPI_REQUEST_NULL;
};

/// What sends and receives have in common: chunks that are first with the one and then with the other of MPI
/// and the device, in order.
class PinnedMessage : public StagedMessage {
 public:
  PinnedMessage(const StagedRoute& route, const Message& message, cuda::Stream& stream, PinnedPool& pool,
                std::int64_t chunk_bytes)
      : StagedMessage{route}, stream_{stream}, pool_{pool}, cutter_{message.parts, chunk_bytes} {}

  bool is_handed_over() const override { return cutter_.is_done() && passed_on_ == chunks_.size(); }
  bool is_finished() const override { return cutter_.is_done() && chunks_.empty(); }

 protected:
  [[nodiscard]] bool has_room() const { return !cutter_.is_done() && chunks_.size() < chunks_in_flight; }
  Chunk& begin_chunk() {
    Places places = cutter_.next();
    PinnedPool::Block* block = pool_.take(bytes_of(places));
    return chunks_.emplace_back(Chunk{.places = std::move(places), .block = block});
  }
  void end_chunk() {
    pool_.give_back(chunks_.front().block);
    chunks_.pop_front();
    --passed_on_;
  }

  cuda::Stream& stream_;
  PinnedPool& pool_;
  ChunkCutter cutter_;
  std::deque<Chunk> chunks_;   ///< in flight
  std::size_t passed_on_ = 0;  ///< of these, the first ones, which are with their second user
};

class PinnedSend final : public PinnedMessage {
 public:
  using PinnedMessage::PinnedMessage;

  void advance() override {
    while (passed_on_ > 0 && has_left(chunks_.front())) end_chunk();
    while (has_room()) copy_from_device(begin_chunk());
    if (!turn_.has_come()) return;
    while (passed_on_ < chunks_.size() && chunks_[passed_on_].block->copied.has_passed()) {
      start_send(chunks_[passed_on_]);
      ++passed_on_;
    }
    if (is_handed_over()) turn_.pass();
  }

 private:
  void copy_from_device(const Chunk& chunk) {
    std::byte* target = chunk.block->data.get();
    for (const std::span<std::byte> place : chunk.places) {
      cuda::check(cudaMemcpyAsync(target, place.data(), place.size(), cudaMemcpyDeviceToHost, stream_.get()),
                  "cudaMemcpyAsync");
      target += place.size();
    }
    chunk.block->copied.record(stream_);
  }

  void start_send(Chunk& chunk) {
    check_mpi(MPI_Isend(chunk.block->data.get(), bytes_of(chunk.places), MPI_BYTE, route_.peer, route_.tag,
                        route_.comm, &chunk.request),
              "MPI_Isend");
  }

  static bool has_left(Chunk& chunk) {
    int finished = 0;
    check_mpi(MPI_Test(&chunk.request, &finished, MPI_STATUS_IGNORE), "MPI_Test");
    return finished != 0;
  }
};

class PinnedReceive final : public PinnedMessage {
 public:
  using PinnedMessage::PinnedMessage;

  void advance() override {
    while (passed_on_ > 0 && chunks_.front().block->copied.has_passed()) end_chunk();
    if (turn_.has_come()) {
      while (has_room()) start_receive(begin_chunk());
      if (cutter_.is_done()) turn_.pass();
    }
    while (passed_on_ < chunks_.size() && has_arrived(chunks_[passed_on_])) {
      copy_to_device(chunks_[passed_on_]);
      ++passed_on_;
    }
  }

 private:
  void start_receive(Chunk& chunk) {
    check_mpi(MPI_Irecv(chunk.block->data.get(), bytes_of(chunk.places), MPI_BYTE, route_.peer, route_.tag,
                        route_.comm, &chunk.request),
              "MPI_Irecv");
  }

  bool has_arrived(Chunk& chunk) {
    int finished = 0;
    MPI_Status status{};
    check_mpi(MPI_Test(&chunk.request, &finished, &status), "MPI_Test");
    if (finished == 0) return false;
    route_.peers.check_received(status, route_.peer, bytes_of(chunk.places), route_.what);
    return true;
  }

  void copy_to_device(const Chunk& chunk) {
    const std::byte* source = chunk.block->data.get();
    for (const std::span<std::byte> place : chunk.places) {
      cuda::check(cudaMemcpyAsync(place.data(), source, place.size(), cudaMemcpyHostToDevice, stream_.get()),
                  "cudaMemcpyAsync");
      source += place.size();
    }
    chunk.block->copied.record(stream_);
  }
};

}  // namespace

std::unique_ptr<StagedMessage> make_pinned_message(Direction direction, const StagedRoute& route,
                                                   const Message& message, cuda::Stream& stream,
                                                   PinnedPool& pool, std::int64_t chunk_bytes) {
  if (direction == Direction::send) {
    return std::make_unique<PinnedSend>(route, message, stream, pool, chunk_bytes);
  }
  return std::make_unique<PinnedReceive>(route, message, stream, pool, chunk_bytes);
}

}  // namespace hcp
