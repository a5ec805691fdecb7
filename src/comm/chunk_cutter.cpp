#include "src/comm/chunk_cutter.hpp"

#include <algorithm>

namespace hcp {

bool ChunkCutter::is_done() const {
  return std::all_of(parts_.begin() + static_cast<std::ptrdiff_t>(part_), parts_.end(),
                     [](const std::span<std::byte> part) { return part.empty(); });
}

std::vector<std::span<std::byte>> ChunkCutter::next() {
  std::vector<std::span<std::byte>> places;
  std::size_t left = chunk_bytes_;
  while (left > 0 && part_ < parts_.size()) {
    const std::span<std::byte> rest = parts_[part_].subspan(offset_);
    const std::size_t bytes = std::min(left, rest.size());
    if (bytes > 0) places.push_back(rest.first(bytes));
    left -= bytes;
    offset_ += bytes;
    if (offset_ == parts_[part_].size()) {
      ++part_;
      offset_ = 0;
    }
  }
  return places;
}

}  // namespace hcp
