#include "tests/kernels/cuda/device_copy.hpp"

#include "kernels/cuda/check.hpp"

namespace hcp::test {
namespace {

constexpr std::uintptr_t widest_access = 16;  // bytes of a thread

}  // namespace

DeviceCopy::DeviceCopy(cuda::Stream& stream, const void* host, std::int64_t bytes)
    : stream_{stream}, bytes_{static_cast<std::size_t>(bytes)} {
  if (bytes == 0) {
    return;
  }
  const std::size_t offset = reinterpret_cast<std::uintptr_t>(host) % widest_access;
  cuda::check(cudaMalloc(&allocated_, offset + bytes_), "cudaMalloc");
  data_ = static_cast<std::byte*>(allocated_) + offset;
  if (host != nullptr) {
    cuda::check(cudaMemcpyAsync(data_, host, bytes_, cudaMemcpyHostToDevice, stream_.get()),
                "cudaMemcpyAsync");
    stream_.synchronise();
  }
}

DeviceCopy::~DeviceCopy() {
  static_cast<void>(cudaFree(allocated_));
}

void DeviceCopy::read(void* host) const {
  if (bytes_ > 0) {
    cuda::check(cudaMemcpyAsync(host, data_, bytes_, cudaMemcpyDeviceToHost, stream_.get()),
                "cudaMemcpyAsync");
  }
  stream_.synchronise();
}

}  // namespace hcp::test
