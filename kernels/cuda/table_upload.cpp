#include "kernels/cuda/table_upload.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>
#include <utility>

#include "kernels/cuda/check.hpp"

namespace hcp::cuda {
namespace {

constexpr std::int64_t alignment_bytes = 16;  // of the elements of any table
constexpr std::int64_t least_bytes = std::int64_t{64} << 10;

/// Few sizes, so that buffers of one block do for the next.
std::int64_t rounded_up(std::int64_t bytes) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max(bytes, least_bytes))));
}

}  // namespace

DeviceTables::DeviceTables(std::shared_ptr<DeviceMemory> memory, std::span<const std::int64_t> sizes)
    : memory_{std::move(memory)}, offsets_{0} {
  for (const std::int64_t bytes : sizes) {
    offsets_.push_back(offsets_.back() + (bytes + alignment_bytes - 1) / alignment_bytes * alignment_bytes);
  }
  capacity_ = rounded_up(offsets_.back());
  data_ = memory_->allocate(capacity_);
}

DeviceTables::DeviceTables(DeviceTables&& other) noexcept
    : memory_{std::move(other.memory_)},
      offsets_{std::move(other.offsets_)},
      capacity_{other.capacity_},
      data_{std::exchange(other.data_, nullptr)} {}

DeviceTables::~DeviceTables() {
  if (data_ != nullptr) {
    memory_->release(data_, capacity_);
  }
}

TableUpload::TableUpload(std::shared_ptr<Stream> stream, std::shared_ptr<DeviceMemory> memory)
    : stream_{std::move(stream)}, memory_{std::move(memory)} {}

TableUpload::~TableUpload() {
  if (std::uncaught_exceptions() > 0) {
    return;  // what the stream waits for may never come
  }
  static_cast<void>(cudaStreamSynchronize(stream_->get()));
}

TableUpload::Place& TableUpload::place_for(std::int64_t bytes) {
  if (bytes > most_bytes_in_ring) {
    return large_;
  }
  Place& place = ring_[next_];
  next_ = (next_ + 1) % places;
  return place;
}

DeviceTables TableUpload::upload(std::span<const std::span<const std::byte>> tables) {
  std::vector<std::int64_t> sizes;
  for (const std::span<const std::byte> table : tables) {
    sizes.push_back(std::ssize(table));
  }
  DeviceTables target{memory_, sizes};
  const std::int64_t bytes = target.offsets().back();
  if (bytes == 0) {
    return target;
  }
  Place& place = place_for(bytes);
  place.copied.synchronise();
  if (place.bytes < bytes) {
    place.data = allocate_pinned(rounded_up(bytes));
    place.bytes = rounded_up(bytes);
  }
  for (std::size_t i = 0; i < tables.size(); ++i) {
    if (!tables[i].empty()) {
      std::memcpy(place.data.get() + target.offsets()[i], tables[i].data(), tables[i].size());
    }
  }
  check(cudaMemcpyAsync(target.data(), place.data.get(), static_cast<std::size_t>(bytes),
                        cudaMemcpyHostToDevice, stream_->get()),
        "cudaMemcpyAsync");
  place.copied.record(*stream_);
  return target;
}

}  // namespace hcp::cuda
