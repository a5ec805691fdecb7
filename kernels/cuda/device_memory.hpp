/// Memory of a device, and memory of the host that a device can copy from and to while the host does
/// something else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/buffer.hpp"
#include "kernels/cuda/stream.hpp"

namespace hcp::cuda {

/// Buffers of the current device, in the order of one stream: what is released is given out again at once,
/// while work on the stream may still use it, and comes to its new owner later on the same stream. Whoever
/// uses a buffer on another stream orders itself after the first at the time it gets the buffer, and the
/// first after itself before the buffer is released.
///
/// Nothing goes back to the device before the end: cudaMalloc and cudaFree would wait for all its work.
class DeviceMemory final : public MemorySource {
 public:
  explicit DeviceMemory(std::shared_ptr<Stream> stream) : stream_{std::move(stream)} {}
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  /// All buffers must have been released. Frees nothing while an exception unwinds, as pinned memory does:
  /// the device may never come to an end then, and the program has to.
  ~DeviceMemory() override;

  [[nodiscard]] MemorySpace space() const override { return MemorySpace::device; }
  /// A released buffer of this very size, else new memory: a pass needs the sizes of the one before.
  [[nodiscard]] std::byte* allocate(std::int64_t bytes) override;
  void release(std::byte* data, std::int64_t bytes) noexcept override;
  void copy_from_host(std::byte* data, const std::byte* host, std::int64_t bytes) override;
  void copy_to_host(std::byte* host, const std::byte* data, std::int64_t bytes) override;

 private:
  void free_released();

  struct Blocks {
    std::vector<std::byte*> released;
    std::size_t made = 0;  ///< released and in use
  };
  std::shared_ptr<Stream> stream_;
  std::map<std::int64_t, Blocks> blocks_;  ///< by bytes
};

struct FreePinned {
  void operator()(std::byte* data) const noexcept;
};
/// Host memory that stays where it is.
using PinnedBlock = std::unique_ptr<std::byte[], FreePinned>;

/// @throws std::runtime_error
[[nodiscard]] PinnedBlock allocate_pinned(std::int64_t bytes);

}  // namespace hcp::cuda
