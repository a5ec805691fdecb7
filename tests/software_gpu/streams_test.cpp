/// Streams, events, devices and errors of the software GPU.
#include <string>

#include "tests/software_gpu/runtime_case.hpp"

namespace hcp::software_gpu {
namespace {

class SoftwareGpuStreams : public Runtime {
 protected:
  cudaEvent_t make_event(unsigned flags) {
    cudaEvent_t event = nullptr;
    EXPECT_EQ(cudaEventCreateWithFlags(&event, flags), cudaSuccess);
    return event;
  }
};

TEST_F(SoftwareGpuStreams, EventsTellTime) {
  const cudaEvent_t first = make_event(cudaEventDefault);
  const cudaEvent_t second = make_event(cudaEventDefault);
  ASSERT_EQ(cudaEventRecord(first, stream_), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(second, stream_), cudaSuccess);
  float forth = -1.0F;
  float back = 1.0F;
  EXPECT_EQ(cudaEventElapsedTime(&forth, first, second), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&back, second, first), cudaSuccess);
  EXPECT_GE(forth, 0.0F);
  EXPECT_EQ(forth, -back);
  ASSERT_EQ(cudaEventRecord(first, stream_), cudaSuccess);  // again
  EXPECT_EQ(cudaEventElapsedTime(&back, second, first), cudaSuccess);
  EXPECT_GE(back, 0.0F);
  EXPECT_EQ(cudaEventDestroy(first), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(second), cudaSuccess);
  expect_no_misuse();
}

TEST_F(SoftwareGpuStreams, TimesThatNobodyTook) {
  const cudaEvent_t timed = make_event(cudaEventDefault);
  const cudaEvent_t untimed = make_event(cudaEventDisableTiming);
  float milliseconds = 0.0F;
  ASSERT_EQ(cudaEventRecord(untimed, stream_), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, timed, timed), cudaErrorInvalidResourceHandle);
  expect_misuse("cudaEventElapsedTime", "never recorded");
  ASSERT_EQ(cudaEventRecord(timed, stream_), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, timed, untimed), cudaErrorInvalidResourceHandle);
  expect_misuse("cudaEventElapsedTime", "tells no time");
  EXPECT_EQ(cudaEventDestroy(timed), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(untimed), cudaSuccess);
}

TEST_F(SoftwareGpuStreams, EventsBeforeTheirFirstRecord) {
  const cudaEvent_t event = make_event(cudaEventDisableTiming);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(event), cudaSuccess);
  expect_no_misuse();
  EXPECT_EQ(cudaStreamWaitEvent(stream_, event, 0), cudaSuccess);
  expect_misuse("cudaStreamWaitEvent", "never recorded");
  ASSERT_EQ(cudaEventRecord(event, stream_), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(stream_, event, 0), cudaSuccess);
  expect_no_misuse();
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST_F(SoftwareGpuStreams, TheDefaultStream) {
  const cudaEvent_t event = make_event(cudaEventDisableTiming);
  char host[4] = {};
  std::uint32_t* data = device_words(1);
  const void* kernel = define_kernel("");
  for (const cudaStream_t stream : {cudaStream_t{}, cudaStreamLegacy, cudaStreamPerThread}) {
    EXPECT_EQ(cudaEventRecord(event, stream), cudaErrorInvalidResourceHandle);
    expect_misuse("cudaEventRecord", "the default stream");
    EXPECT_EQ(cudaMemcpyAsync(data, host, 4, cudaMemcpyHostToDevice, stream), cudaErrorInvalidResourceHandle);
    expect_misuse("cudaMemcpyAsync", "the default stream");
    EXPECT_EQ(launch(kernel, data, data, stream), cudaErrorInvalidResourceHandle);
    expect_misuse("cudaLaunchKernel", "the default stream");
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
    expect_misuse("cudaStreamSynchronize", "the default stream");
  }
  cudaStream_t blocking = nullptr;
  EXPECT_EQ(cudaStreamCreateWithFlags(&blocking, cudaStreamDefault), cudaErrorInvalidValue);
  expect_misuse("cudaStreamCreateWithFlags", "waits for the default stream");
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST_F(SoftwareGpuStreams, WhatWasDestroyed) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  const cudaEvent_t event = make_event(cudaEventDefault);
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaErrorInvalidResourceHandle);
  expect_misuse("cudaStreamDestroy", "a stream that does not exist");
  EXPECT_EQ(cudaEventRecord(event, stream), cudaErrorInvalidResourceHandle);
  expect_misuse("cudaEventRecord", "a stream that does not exist");
  ASSERT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaErrorInvalidResourceHandle);
  expect_misuse("cudaEventDestroy", "an event that does not exist");
  EXPECT_EQ(cudaEventRecord(event, stream_), cudaErrorInvalidResourceHandle);
  expect_misuse("cudaEventRecord", "an event that does not exist");
  EXPECT_EQ(cudaStreamWaitEvent(stream_, event, 0), cudaErrorInvalidResourceHandle);
  expect_misuse("cudaStreamWaitEvent", "an event that does not exist");
  EXPECT_EQ(cudaEventQuery(event), cudaErrorInvalidResourceHandle);
  expect_misuse("cudaEventQuery", "an event that does not exist");
  EXPECT_EQ(cudaEventSynchronize(event), cudaErrorInvalidResourceHandle);
  expect_misuse("cudaEventSynchronize", "an event that does not exist");
}

TEST_F(SoftwareGpuStreams, FlagsThatNobodyKnows) {
  cudaEvent_t event = nullptr;
  EXPECT_EQ(cudaEventCreateWithFlags(&event, cudaEventBlockingSync), cudaErrorInvalidValue);
  expect_misuse("cudaEventCreateWithFlags", "flags");
  event = make_event(cudaEventDefault);
  EXPECT_EQ(cudaStreamWaitEvent(stream_, event, cudaEventWaitExternal), cudaErrorInvalidValue);
  expect_misuse("cudaStreamWaitEvent", "flags");
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST(SoftwareGpuDevice, SaysWhatItIs) {
  int count = 0;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, 1);
  cudaDeviceProp properties{};
  EXPECT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_STREQ(properties.name, "software GPU (no hardware)");
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST(SoftwareGpuDevice, ErrorsAreForgottenOnceTold) {
  cudaDeviceProp properties{};
  EXPECT_EQ(cudaSetDevice(1), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetDeviceProperties(&properties, -1), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_STREQ(cudaGetErrorName(cudaErrorInvalidDevice), "cudaErrorInvalidDevice");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorInvalidDevice), "invalid device ordinal");
  EXPECT_STREQ(cudaGetErrorName(cudaErrorAssert), "cudaErrorUnknown");  // never returned
  expect_no_misuse();
}

}  // namespace
}  // namespace hcp::software_gpu
