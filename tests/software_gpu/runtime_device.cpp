// Entry points of the CUDA runtime: devices, and errors.

#include <cuda_runtime_api.h>

#include <cstring>
#include <string>
#include <string_view>

#include "tests/software_gpu/gpu.hpp"
#include "tests/software_gpu/planted_bugs.hpp"

namespace {

using hcp::software_gpu::Bug;
using hcp::software_gpu::Call;
using hcp::software_gpu::gpu;

struct ErrorText {
  cudaError_t error;
  const char* name;
  const char* text;
};

/// Those that the software GPU returns.
constexpr ErrorText error_texts[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice",
     "no kernel image is available for execution on the device"},
    {cudaErrorInvalidPtx, "cudaErrorInvalidPtx", "a PTX JIT compilation failed"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorLaunchTimeout, "cudaErrorLaunchTimeout", "the launch timed out and was terminated"},
};

constexpr ErrorText unknown_error{cudaErrorUnknown, "cudaErrorUnknown", "unknown error"};

const ErrorText& text_of(cudaError_t error) {
  for (const ErrorText& known : error_texts) {
    if (known.error == error) {
      return known;
    }
  }
  return unknown_error;
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  const Call call{__func__};
  *count = gpu().devices.count();
  return *count == 0 ? call.fail(cudaErrorNoDevice) : call.done();
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  const Call call{__func__};
  if (const cudaError_t found = call.find_device(device); found != cudaSuccess) {
    return found;
  }
  *properties = {};
  constexpr std::string_view name = "software GPU (no hardware)";
  std::memcpy(static_cast<char*>(properties->name), name.data(), name.size());
  properties->major = gpu().architecture.major;
  properties->minor = gpu().architecture.minor;
  properties->totalGlobalMem = hcp::software_gpu::Memory::device_bytes;
  properties->sharedMemPerBlockOptin = static_cast<std::size_t>(gpu().architecture.max_shared_bytes);
  properties->multiProcessorCount = 1;
  properties->warpSize = 32;
  properties->pciBusID = gpu().devices.pci_bus(device);
  return call.done();
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  const Call call{__func__};
  if (const cudaError_t found = call.find_device(device); found != cudaSuccess) {
    return found;
  }
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
      *value = gpu().architecture.major;
      return call.done();
    case cudaDevAttrMultiProcessorCount:
      *value = 1;
      return call.done();
    case cudaDevAttrClockRate:
      *value = 1'000'000;  // kHz, of a clock that nothing runs at
      return call.done();
    default:
      return call.fail(cudaErrorInvalidValue);
  }
}

cudaError_t cudaSetDevice(int device) {
  const Call call{__func__};
  const cudaError_t found = call.find_device(device);
  if (found == cudaSuccess) {
    hcp::software_gpu::make_current(device);
  }
  return found;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int bytes, int device) {
  const Call call{__func__};
  if (const cudaError_t found = call.find_device(device); found != cudaSuccess) {
    return found;
  }
  const std::string id = gpu().devices.pci_bus_id(device);
  if (bytes <= static_cast<int>(id.size())) {
    return call.fail(cudaErrorInvalidValue);
  }
  std::memcpy(text, id.c_str(), id.size() + 1);
  return call.done();
}

cudaError_t cudaDeviceSynchronize() {
  Call call{__func__};
  if (has_bug(Bug::skip_synchronise)) {
    return call.done();
  }
  return call.wait_for_device(hcp::software_gpu::current_device());
}

cudaError_t cudaDriverGetVersion(int* version) {
  const Call call{__func__};
  *version = CUDART_VERSION;
  return call.done();
}

cudaError_t cudaGetLastError() {
  return hcp::software_gpu::take_last_error();
}

const char* cudaGetErrorName(cudaError_t error) {
  return text_of(error).name;
}

const char* cudaGetErrorString(cudaError_t error) {
  return text_of(error).text;
}

}  // extern "C"
