/// Tables of one block on their way from the host to the device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/cuda/device_memory.hpp"
#include "kernels/cuda/stream.hpp"

namespace hcp::cuda {

/// Tables on the device, side by side in one buffer; for what the stream is asked while this object lives.
/// Move-only.
class DeviceTables {
 public:
  /// @param sizes  bytes of each table
  DeviceTables(std::shared_ptr<DeviceMemory> memory, std::span<const std::int64_t> sizes);
  DeviceTables(DeviceTables&& other) noexcept;
  DeviceTables& operator=(DeviceTables&&) = delete;
  ~DeviceTables();

  /// Null if the table is empty.
  template <typename Element>
  [[nodiscard]] const Element* table(std::size_t index) const {
    return offsets_[index] == offsets_[index + 1] ? nullptr
                                                  : reinterpret_cast<const Element*>(data_ + offsets_[index]);
  }

  [[nodiscard]] std::byte* data() const { return data_; }
  /// Where each table begins, and the end; multiples of 16.
  [[nodiscard]] const std::vector<std::int64_t>& offsets() const { return offsets_; }

 private:
  std::shared_ptr<DeviceMemory> memory_;
  std::vector<std::int64_t> offsets_;
  std::int64_t capacity_ = 0;
  std::byte* data_ = nullptr;
};

/// Takes tables to the device by way of pinned places. A place is used again when its last copy has been
/// made. Tables of ordinary blocks go round in a ring: the host waits only where the device is a whole ring
/// of uploads behind, so has plenty to do. Larger ones share one place, so that pinned memory stays small:
/// what they describe takes the device long.
class TableUpload {
 public:
  TableUpload(std::shared_ptr<Stream> stream, std::shared_ptr<DeviceMemory> memory);
  TableUpload(const TableUpload&) = delete;
  TableUpload& operator=(const TableUpload&) = delete;
  /// Waits for the copies on their way; except while an exception unwinds, as DeviceMemory.
  ~TableUpload();

  /// The tables may go when it returns.
  [[nodiscard]] DeviceTables upload(std::span<const std::span<const std::byte>> tables);

 private:
  struct Place {
    PinnedBlock data;
    std::int64_t bytes = 0;
    Event copied{Event::Kind::order};
  };
  static constexpr std::size_t places = 16;
  static constexpr std::int64_t most_bytes_in_ring = std::int64_t{8} << 20;

  [[nodiscard]] Place& place_for(std::int64_t bytes);

  std::shared_ptr<Stream> stream_;
  std::shared_ptr<DeviceMemory> memory_;
  std::array<Place, places> ring_;
  std::size_t next_ = 0;
  Place large_;
};

}  // namespace hcp::cuda
