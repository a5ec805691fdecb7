/// Several devices, of which a process may see some.
#include <array>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/software_gpu/gpu.hpp"
#include "tests/software_gpu/runtime_case.hpp"

namespace hcp::software_gpu {
namespace {

class VisibleDevices : public testing::Test {
 protected:
  ~VisibleDevices() override {
    gpu().devices = Devices{};
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    static_cast<void>(cudaGetLastError());
  }

  /// Bus ids of the devices, in order.
  static std::vector<std::string> seen(int installed, std::optional<std::string_view> visible) {
    gpu().devices.set(installed, visible);
    int count = -1;
    const cudaError_t result = cudaGetDeviceCount(&count);
    EXPECT_EQ(result, count == 0 ? cudaErrorNoDevice : cudaSuccess);
    std::vector<std::string> ids;
    for (int device = 0; device < count; ++device) {
      std::array<char, 16> id{};
      EXPECT_EQ(cudaDeviceGetPCIBusId(id.data(), id.size(), device), cudaSuccess);
      ids.emplace_back(id.data());
    }
    return ids;
  }
};

TEST_F(VisibleDevices, AreThoseThatTheVariableNames) {
  const std::vector<std::string> all = seen(4, std::nullopt);
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), 4);
  EXPECT_EQ(all[0], "0000:10:00.0");
  using Ids = std::vector<std::string>;
  EXPECT_EQ(seen(4, "2,0"), (Ids{all[2], all[0]}));
  EXPECT_EQ(seen(4, "3"), Ids{all[3]});
  EXPECT_EQ(seen(4, "1,7,2"), Ids{all[1]});  // what follows a wrong number counts no more
  EXPECT_EQ(seen(4, "1,1"), Ids{all[1]});
  for (const char* none : {"", "-1", "all", "4"}) {
    EXPECT_EQ(seen(4, none), Ids{}) << none;
  }
}

TEST_F(VisibleDevices, MayBeNone) {
  gpu().devices.set(2, "");
  void* data = nullptr;
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  cudaDeviceProp properties{};
  EXPECT_EQ(cudaSetDevice(0), cudaErrorNoDevice);
  EXPECT_EQ(cudaGetDeviceProperties(&properties, 0), cudaErrorNoDevice);
  EXPECT_EQ(cudaMalloc(&data, 4), cudaErrorNoDevice);
  EXPECT_EQ(cudaMallocHost(&data, 4), cudaErrorNoDevice);
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaErrorNoDevice);
  EXPECT_EQ(cudaEventCreateWithFlags(&event, cudaEventDefault), cudaErrorNoDevice);
  EXPECT_STREQ(cudaGetErrorString(cudaErrorNoDevice), "no CUDA-capable device is detected");
  expect_no_misuse();  // a program may ask
}

/// Everything of one device while the other is current.
TEST_F(VisibleDevices, AreNotMixedUp) {
  gpu().devices.set(2, std::nullopt);
  void* data = nullptr;
  void* data_of_0 = nullptr;
  cudaStream_t stream = nullptr;
  cudaStream_t stream_of_0 = nullptr;
  cudaEvent_t event = nullptr;
  char host[8] = {};
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream_of_0, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&data_of_0, 8), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&data, 8), cudaSuccess);
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDefault), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(data, host, 8, cudaMemcpyHostToDevice, stream), cudaSuccess);
  expect_no_misuse();

  EXPECT_EQ(cudaMemcpyAsync(data_of_0, host, 8, cudaMemcpyHostToDevice, stream), cudaErrorInvalidValue);
  expect_misuse("cudaMemcpyAsync", "is memory of another device");
  const void* kernel = define_kernel("mov.u32 %r0, 7; st.global.u32 [%d9], %r0;");
  ASSERT_EQ(launch(kernel, data, data, stream, 1), cudaSuccess);
  ASSERT_EQ(launch(kernel, data_of_0, data_of_0, stream, 1), cudaSuccess);
  const std::vector<Launch> launches = take_launches();
  ASSERT_EQ(launches.size(), 2);
  EXPECT_TRUE(launches[0].report.findings.empty());
  ASSERT_EQ(launches[1].report.findings.size(), 1);
  EXPECT_THAT(launches[1].report.findings[0].message, testing::HasSubstr("in memory of another device"));

  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(data, host, 8, cudaMemcpyHostToDevice, stream), cudaErrorInvalidResourceHandle);
  expect_misuse("cudaMemcpyAsync", "a stream of device 1 while device 0 is current");
  EXPECT_EQ(launch(kernel, data, data, stream, 1), cudaErrorInvalidResourceHandle);
  expect_misuse("cudaLaunchKernel", "a stream of device 1 while device 0 is current");
  EXPECT_EQ(cudaEventRecord(event, stream), cudaErrorInvalidResourceHandle);
  expect_misuse("cudaEventRecord", "a stream of device 1 while device 0 is current");
  EXPECT_EQ(cudaEventRecord(event, stream_of_0), cudaErrorInvalidResourceHandle);
  expect_misuse("cudaEventRecord", "an event of another device");

  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);  // the host may wait for any
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream_of_0), cudaSuccess);
  EXPECT_EQ(cudaFree(data), cudaSuccess);
  EXPECT_EQ(cudaFree(data_of_0), cudaSuccess);
  expect_no_misuse();
}

}  // namespace
}  // namespace hcp::software_gpu
