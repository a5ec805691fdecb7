// Entry points of the CUDA runtime: memory and copies.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "tests/software_gpu/gpu.hpp"

namespace {

using namespace hcp::software_gpu;  // NOLINT: the runtime's functions are in no namespace

struct Ends {
  bool from_device = false;
  bool to_device = false;
};

std::optional<Ends> ends_of(cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return Ends{};
    case cudaMemcpyHostToDevice:
      return Ends{.to_device = true};
    case cudaMemcpyDeviceToHost:
      return Ends{.from_device = true};
    case cudaMemcpyDeviceToDevice:
      return Ends{.from_device = true, .to_device = true};
    default:
      return std::nullopt;
  }
}

/// What is wrong with one end of a copy.
std::optional<std::string> fault_of(const char* end, bool device, const void* begin, std::size_t bytes) {
  Memory& memory = gpu().memory;
  const Place place = device                                    ? Place::device
                      : memory.place_of(begin) == Place::pinned ? Place::pinned
                                                                : Place::host;
  const std::optional<std::string> fault = memory.elsewhere(place, begin, bytes);
  return fault ? std::optional{std::string{end} + " should be " + name_of(place) + " but " + *fault} : fault;
}

/// Flags of bytes of the device, 1 for those that have been written.
std::span<std::uint8_t> written(const void* begin, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  auto* region = gpu().memory.device().find(address, bytes);
  return std::span{region->written}.subspan(address - region->base, bytes);
}

/// Bytes and their flags. @return a misuse, or nothing
std::optional<std::string> copy(Ends ends, void* target, const void* source, std::size_t bytes) {
  std::memcpy(target, source, bytes);
  if (ends.from_device && ends.to_device) {
    std::ranges::copy(written(source, bytes), written(target, bytes).begin());
  } else if (ends.to_device) {
    std::ranges::fill(written(target, bytes), std::uint8_t{1});
  } else if (ends.from_device) {
    const std::span<std::uint8_t> flags = written(source, bytes);
    if (const auto missing = std::ranges::count(flags, 0); missing > 0) {
      return std::to_string(missing) + " of " + std::to_string(bytes) +
             " bytes go to the host that nobody has written, the first at " +
             std::to_string(std::ranges::find(flags, 0) - flags.begin());
    }
  }
  return std::nullopt;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** data, size_t bytes) {
  const Call call{__func__};
  if (bytes == 0) {
    *data = nullptr;
    return call.done();
  }
  void* allocated = gpu().memory.allocate_device(bytes);
  if (allocated == nullptr) {
    return call.fail(cudaErrorMemoryAllocation);
  }
  *data = allocated;
  return call.done();
}

cudaError_t cudaFree(void* data) {
  const Call call{__func__};
  if (data == nullptr || gpu().memory.free_device(data)) {
    return call.done();
  }
  return call.misuse(cudaErrorInvalidValue,
                     "not the begin of memory of the device, but " + name_of(gpu().memory.place_of(data)));
}

cudaError_t cudaMallocHost(void** data, size_t bytes) {
  const Call call{__func__};
  *data = bytes == 0 ? nullptr : gpu().memory.allocate_pinned(bytes);
  return call.done();
}

cudaError_t cudaFreeHost(void* data) {
  const Call call{__func__};
  if (data == nullptr || gpu().memory.free_pinned(data)) {
    return call.done();
  }
  return call.misuse(cudaErrorInvalidValue,
                     "not the begin of pinned memory, but " + name_of(gpu().memory.place_of(data)));
}

cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream_handle) {
  const Call call{__func__};
  Stream* stream = call.stream(stream_handle);
  if (stream == nullptr) {
    return cudaErrorInvalidResourceHandle;
  }
  const std::optional<Ends> ends = ends_of(kind);
  if (!ends) {
    return call.misuse(cudaErrorInvalidMemcpyDirection, "a copy that does not say from where to where");
  }
  if (bytes == 0) {
    return call.done();
  }
  for (const auto& fault : {fault_of("the source", ends->from_device, source, bytes),
                            fault_of("the target", ends->to_device, target, bytes)}) {
    if (fault) {
      return call.misuse(cudaErrorInvalidValue, *fault);
    }
  }
  const auto* begin = static_cast<const std::byte*>(source);
  auto* target_begin = static_cast<std::byte*>(target);
  if (begin < target_begin + bytes && target_begin < begin + bytes) {
    return call.misuse(cudaErrorInvalidValue, "source and target overlap");
  }
  stream->submit([&] {
    if (const auto fault = copy(*ends, target, source, bytes)) {
      static_cast<void>(call.misuse(cudaSuccess, *fault));
    }
  });
  return call.done();
}

}  // extern "C"
