/// Pinned memory of the host through which messages of devices travel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "kernels/cuda/device_memory.hpp"
#include "kernels/cuda/stream.hpp"

namespace hcp {

/// Blocks that are lent and taken back. Few sizes, so that those of one message do for the next. Nothing is
/// freed before the end: making and freeing pinned memory waits for the device.
class PinnedPool {
 public:
  struct Block {
    explicit Block(std::int64_t bytes) : data{cuda::allocate_pinned(bytes)}, capacity{bytes} {}
    cuda::PinnedBlock data;
    std::int64_t capacity;
    cuda::Event copied{cuda::Event::Kind::order};  ///< of whoever borrows the block
  };

  /// Of `bytes` at least. @throws std::runtime_error
  [[nodiscard]] Block* take(std::int64_t bytes);
  /// When neither the network nor the device uses it any more. What is not given back is never freed: while
  /// an exception unwinds, messages may still be on their way through it.
  void give_back(Block* block);

 private:
  std::map<std::int64_t, std::vector<std::unique_ptr<Block>>> idle_;  ///< by capacity
};

}  // namespace hcp
