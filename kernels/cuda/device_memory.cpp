#include "kernels/cuda/device_memory.hpp"

#include <exception>
#include <new>

#include "kernels/cuda/check.hpp"

namespace hcp::cuda {

DeviceMemory::~DeviceMemory() {
  if (std::uncaught_exceptions() > 0) {
    return;  // cudaFree waits for the device, and what that waits for may never come
  }
  free_released();
}

std::byte* DeviceMemory::allocate(std::int64_t bytes) {
  Blocks& blocks = blocks_[bytes];
  if (!blocks.released.empty()) {
    std::byte* data = blocks.released.back();
    blocks.released.pop_back();
    return data;
  }
  blocks.released.reserve(blocks.made + 1);  // release may not fail
  void* data = nullptr;
  cudaError_t result = cudaMalloc(&data, static_cast<std::size_t>(bytes));
  if (result == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");  // work may still use what was released
    free_released();
    result = cudaMalloc(&data, static_cast<std::size_t>(bytes));
  }
  if (result == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    throw std::bad_alloc{};
  }
  check(result, "cudaMalloc");
  ++blocks.made;
  return static_cast<std::byte*>(data);
}

void DeviceMemory::release(std::byte* data, std::int64_t bytes) noexcept {
  blocks_.find(bytes)->second.released.push_back(data);
}

void DeviceMemory::copy_from_host(std::byte* data, const std::byte* host, std::int64_t bytes) {
  check(cudaMemcpyAsync(data, host, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, stream_->get()),
        "cudaMemcpyAsync");
  stream_->synchronise();
}

void DeviceMemory::copy_to_host(std::byte* host, const std::byte* data, std::int64_t bytes) {
  check(cudaMemcpyAsync(host, data, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost, stream_->get()),
        "cudaMemcpyAsync");
  stream_->synchronise();
}

void DeviceMemory::free_released() {
  for (auto& [bytes, blocks] : blocks_) {
    for (std::byte* data : blocks.released) {
      static_cast<void>(cudaFree(data));
    }
    blocks.made -= blocks.released.size();
    blocks.released.clear();
  }
}

void FreePinned::operator()(std::byte* data) const noexcept {
  if (std::uncaught_exceptions() > 0) {
    return;  // as in ~DeviceMemory
  }
  static_cast<void>(cudaFreeHost(data));
}

PinnedBlock allocate_pinned(std::int64_t bytes) {
  void* data = nullptr;
  check(cudaMallocHost(&data, static_cast<std::size_t>(bytes)), "cudaMallocHost");
  return PinnedBlock{static_cast<std::byte*>(data)};
}

}  // namespace hcp::cuda
