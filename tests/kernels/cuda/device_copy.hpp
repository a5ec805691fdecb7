/// Memory of a device for tests: allocations of exactly the bytes asked for, so that whoever watches accesses
/// sees what lies beyond them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/stream.hpp"

namespace hcp::test {

/// `bytes` of host memory, copied to the device, where they begin at the same place of 16 bytes. All of it
/// waits until it is done.
class DeviceCopy {
 public:
  /// Memory that nothing has been written to, if `host` is null; none and a null pointer, if there are no
  /// bytes.
  DeviceCopy(cuda::Stream& stream, const void* host, std::int64_t bytes);
  DeviceCopy(const DeviceCopy&) = delete;
  DeviceCopy& operator=(const DeviceCopy&) = delete;
  ~DeviceCopy();

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] float* floats() const { return reinterpret_cast<float*>(data_); }
  /// Copies all bytes back.
  void read(void* host) const;

 private:
  cuda::Stream& stream_;
  std::size_t bytes_;
  void* allocated_ = nullptr;
  std::byte* data_ = nullptr;
};

}  // namespace hcp::test
