// Entry points of the CUDA runtime: memory and copies.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "tests/software_gpu/checks.hpp"
#include "tests/software_gpu/copies.hpp"
#include "tests/software_gpu/gpu.hpp"
#include "tests/software_gpu/planted_bugs.hpp"

namespace {

using namespace hcp::software_gpu;  // NOLINT: the runtime's functions are in no namespace

std::optional<CopyEnds> ends_of(cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return CopyEnds{};
    case cudaMemcpyHostToDevice:
      return CopyEnds{.to_device = true};
    case cudaMemcpyDeviceToHost:
      return CopyEnds{.from_device = true};
    case cudaMemcpyDeviceToDevice:
      return CopyEnds{.from_device = true, .to_device = true};
    default:
      return std::nullopt;
  }
}

/// What is wrong with one end of a copy.
std::optional<std::string> fault_of(const char* end, bool on_device, const void* begin, std::size_t bytes) {
  Memory& memory = gpu().memory;
  const Place place = on_device                                 ? Place::device
                      : memory.place_of(begin) == Place::pinned ? Place::pinned
                                                                : Place::host;
  const std::optional<std::string> fault = memory.elsewhere(place, current_device(), begin, bytes);
  return fault ? std::optional{std::string{end} + " should be " + name_of(place) + " but " + *fault} : fault;
}

/// Its addresses are never given out again.
void forget(const void* begin, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  gpu().history.forget(address, address + bytes);
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** data, size_t bytes) {
  const Call call{__func__};
  if (const cudaError_t found = call.find_device(current_device()); found != cudaSuccess) {
    return found;
  }
  if (bytes == 0) {
    *data = nullptr;
    return call.done();
  }
  void* allocated = gpu().memory.allocate_device(current_device(), bytes);
  if (allocated == nullptr) {
    return call.fail(cudaErrorMemoryAllocation);
  }
  *data = allocated;
  return call.done();
}

/// Waits for all work of the memory's device.
cudaError_t cudaFree(void* data) {
  Call call{__func__};
  if (data == nullptr) {
    return call.done();
  }
  const int device = gpu().memory.device_of(data).value_or(current_device());
  if (const cudaError_t waited = call.wait_for_device(device); waited != cudaSuccess) {
    return waited;
  }
  if (const auto bytes = gpu().memory.free_device(data)) {
    forget(data, *bytes);
    return call.done();
  }
  return call.misuse(cudaErrorInvalidValue,
                     "not the begin of memory of the device, but " + name_of(gpu().memory.place_of(data)));
}

cudaError_t cudaMallocHost(void** data, size_t bytes) {
  const Call call{__func__};
  if (const cudaError_t found = call.find_device(current_device()); found != cudaSuccess) {
    return found;
  }
  *data = bytes == 0 ? nullptr : gpu().memory.allocate_pinned(bytes);
  return call.done();
}

/// Nobody has promised that it waits for work of a device that uses the memory.
cudaError_t cudaFreeHost(void* data) {
  Call call{__func__};
  if (data == nullptr) {
    return call.done();
  }
  const Clock known = gpu().engine.host();
  if (const cudaError_t waited = call.wait_for_all_devices(); waited != cudaSuccess) {
    return waited;
  }
  if (const auto bytes = gpu().memory.free_pinned(data)) {
    check_unused(known, data, *bytes);
    forget(data, *bytes);
    return call.done();
  }
  return call.misuse(cudaErrorInvalidValue,
                     "not the begin of pinned memory, but " + name_of(gpu().memory.place_of(data)));
}

cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream_handle) {
  const Call call{__func__};
  const std::shared_ptr<Stream> stream = call.current_stream(stream_handle);
  if (stream == nullptr) {
    return cudaErrorInvalidResourceHandle;
  }
  const std::optional<CopyEnds> ends = ends_of(kind);
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
  if (has_bug(Bug::lost_copy)) {
    return call.done();
  }
  stream->submit(name_of_copy(*ends, bytes), copy_operation(*ends, target, source, bytes));
  return call.done();
}

}  // extern "C"
