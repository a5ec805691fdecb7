/// A message in pieces that travel one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace hcp {

/// Cuts the bytes of a message, in their order, into chunks of one size and a shorter last one. How the parts
/// lie does not matter, so both ends of a message cut it alike.
class ChunkCutter {
 public:
  ChunkCutter(std::vector<std::span<std::byte>> parts, std::int64_t chunk_bytes)
      : parts_{std::move(parts)}, chunk_bytes_{static_cast<std::size_t>(chunk_bytes)} {}

  [[nodiscard]] bool is_done() const;
  /// Where the bytes of the next chunk lie, in order.
  [[nodiscard]] std::vector<std::span<std::byte>> next();

 private:
  std::vector<std::span<std::byte>> parts_;
  std::size_t chunk_bytes_;
  std::size_t part_ = 0;    ///< the next byte is in this one
  std::size_t offset_ = 0;  ///< of the next byte in it
};

}  // namespace hcp
