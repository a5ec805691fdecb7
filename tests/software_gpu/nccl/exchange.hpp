/// The messages of one launch, carried by MPI.
#pragma once

#include <mpi.h>
#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/software_gpu/nccl/communicator.hpp"

namespace hcp::software_gpu {

enum class Function : std::uint8_t { point_to_point, all_gather, reduce_scatter, all_reduce, broadcast };

/// One message as the rank at one of its ends sees it.
struct MessageEnd {
  int peer = 0;  ///< rank in the communicator
  std::size_t bytes = 0;
  ncclDataType_t type = ncclInt8;
  Function function = Function::point_to_point;
};

/// A message whose ends differ is a finding of the receiver. Sends end when their receivers ask for them:
/// NCCL promises no more.
class Exchange {
 public:
  /// @param name  in findings
  Exchange(std::shared_ptr<Communicator> communicator, std::string name)
      : communicator_{std::move(communicator)}, name_{std::move(name)} {}
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  /// What is still under way is left to MPI.
  ~Exchange();

  /// Takes the bytes along at once.
  void send(const MessageEnd& end, std::span<const std::byte> bytes);
  /// Messages of one peer arrive in the order of these calls.
  void receive(const MessageEnd& end);

  /// @return whether all messages have arrived and left
  [[nodiscard]] bool advance();
  /// By receive(), when all have arrived: as many bytes as were asked for.
  [[nodiscard]] std::span<const std::byte> arrived(std::size_t receive) const;

 private:
  struct Transfer {
    MessageEnd end;
    std::vector<std::byte> bytes{};  // a header first
    MPI_Request request = MPI_REQUEST_NULL;
    bool started = false;
    bool done = false;
  };

  /// If a message of that peer is there.
  void start_receive(Transfer& transfer);
  void check(const Transfer& receive);

  std::shared_ptr<Communicator> communicator_;
  std::string name_;
  std::vector<Transfer> sends_;
  std::vector<Transfer> receives_;
};

}  // namespace hcp::software_gpu
