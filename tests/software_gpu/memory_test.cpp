/// Memory and copies of the software GPU: what they do, and every wrong use of them that is found.
#include <csignal>
#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

#include "tests/software_gpu/runtime_case.hpp"

namespace hcp::software_gpu {
namespace {

using Words = std::vector<std::uint32_t>;

class SoftwareGpuMemory : public Runtime {};

TEST_F(SoftwareGpuMemory, ComesBackAsItWasWritten) {
  const Words values{1, 2, 3, 4};
  const std::uint32_t* first = device_words(values);
  std::uint32_t* second = device_words(4);
  ASSERT_EQ(cudaMemcpyAsync(second, first, 16, cudaMemcpyDeviceToDevice, stream_), cudaSuccess);
  EXPECT_EQ(to_host(second, 4), values);
  EXPECT_EQ(to_host(second + 1, 2), (Words{2, 3}));
  expect_no_misuse();
}

TEST_F(SoftwareGpuMemory, IsNaNAndAlignedTo256Bytes) {
  for (const std::size_t words : {1U, 64U, 5000U}) {
    const std::uint32_t* data = device_words(words);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 256, 0);
    EXPECT_NE(reinterpret_cast<std::uintptr_t>(data) % 512, 0);  // code may not rely on more
    EXPECT_EQ(to_host(data, words), Words(words, 0xffffffff));
    expect_misuse("cudaMemcpyAsync", "nobody has written");
  }
}

TEST_F(SoftwareGpuMemory, BytesNeverWrittenMayNotGoToTheHost) {
  std::uint32_t* data = device_words(8);
  const Words values{1, 2, 3};
  ASSERT_EQ(cudaMemcpyAsync(data, values.data(), 12, cudaMemcpyHostToDevice, stream_), cudaSuccess);
  EXPECT_EQ(to_host(data, 3), values);
  expect_no_misuse();
  EXPECT_EQ(to_host(data, 8).size(), 8);
  expect_misuse("cudaMemcpyAsync", "20 of 32 bytes go to the host that nobody has written, the first at 12");
}

/// Copies within the device may hold gaps; what they copy to then has the same.
TEST_F(SoftwareGpuMemory, CopiesWithinTheDeviceTakeGapsAlong) {
  const std::uint32_t* unwritten = device_words(2);
  std::uint32_t* data = device_words(Words{1, 2, 3, 4});
  ASSERT_EQ(cudaMemcpyAsync(data + 1, unwritten, 8, cudaMemcpyDeviceToDevice, stream_), cudaSuccess);
  EXPECT_EQ(to_host(data, 1), Words{1});
  EXPECT_EQ(to_host(data + 3, 1), Words{4});
  expect_no_misuse();
  EXPECT_EQ(to_host(data, 4), (Words{1, 0xffffffff, 0xffffffff, 4}));
  expect_misuse("cudaMemcpyAsync", "8 of 16 bytes go to the host that nobody has written, the first at 4");
}

TEST_F(SoftwareGpuMemory, TheHostCannotTouchIt) {
  const std::uint32_t* data = device_words(Words{1});
  EXPECT_EXIT(std::printf("%u", *data), testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(SoftwareGpuMemory, AddressesAreNeverGivenOutTwice) {
  std::set<void*> seen;
  for (int i = 0; i < 100; ++i) {
    void* data = nullptr;
    ASSERT_EQ(cudaMalloc(&data, 1000), cudaSuccess);
    EXPECT_TRUE(seen.insert(data).second);
    ASSERT_EQ(cudaFree(data), cudaSuccess);
  }
}

TEST_F(SoftwareGpuMemory, RunsOut) {
  void* half = nullptr;
  void* rest = nullptr;
  ASSERT_EQ(cudaMalloc(&rest, std::size_t{1} << 40), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  cudaDeviceProp properties{};
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&half, 1 << 20), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&rest, properties.totalGlobalMem), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaFree(half), cudaSuccess);
  expect_no_misuse();  // a program may ask
}

TEST_F(SoftwareGpuMemory, NothingOfNoBytes) {
  void* data = &data;
  EXPECT_EQ(cudaMalloc(&data, 0), cudaSuccess);
  EXPECT_EQ(data, nullptr);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(nullptr), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(nullptr, nullptr, 0, cudaMemcpyHostToDevice, stream_), cudaSuccess);
  expect_no_misuse();
}

TEST_F(SoftwareGpuMemory, WrongFrees) {
  void* data = nullptr;
  void* pinned = nullptr;
  ASSERT_EQ(cudaMalloc(&data, 16), cudaSuccess);
  ASSERT_EQ(cudaMallocHost(&pinned, 16), cudaSuccess);
  EXPECT_EQ(cudaFree(static_cast<char*>(data) + 4), cudaErrorInvalidValue);
  expect_misuse("cudaFree", "memory of the device");
  EXPECT_EQ(cudaFree(pinned), cudaErrorInvalidValue);
  expect_misuse("cudaFree", "pinned memory");
  EXPECT_EQ(cudaFreeHost(data), cudaErrorInvalidValue);
  expect_misuse("cudaFreeHost", "memory of the device");
  int on_host = 0;
  EXPECT_EQ(cudaFree(&on_host), cudaErrorInvalidValue);
  expect_misuse("cudaFree", "memory of the host");
  EXPECT_EQ(cudaFree(data), cudaSuccess);
  EXPECT_EQ(cudaFree(data), cudaErrorInvalidValue);
  expect_misuse("cudaFree", "freed memory");
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pinned), cudaErrorInvalidValue);
  expect_misuse("cudaFreeHost", "freed memory");
}

TEST_F(SoftwareGpuMemory, CopiesOfFreedMemory) {
  void* data = nullptr;
  char host[16] = {};
  ASSERT_EQ(cudaMalloc(&data, 16), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(data, host, 16, cudaMemcpyHostToDevice, stream_), cudaSuccess);
  ASSERT_EQ(cudaFree(data), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(host, data, 16, cudaMemcpyDeviceToHost, stream_), cudaErrorInvalidValue);
  expect_misuse("cudaMemcpyAsync", "the source should be memory of the device but is freed memory");
  EXPECT_EQ(cudaMemcpyAsync(data, host, 16, cudaMemcpyHostToDevice, stream_), cudaErrorInvalidValue);
  expect_misuse("cudaMemcpyAsync", "the target should be memory of the device but is freed memory");
}

TEST_F(SoftwareGpuMemory, CopiesInTheWrongDirection) {
  std::uint32_t* data = device_words(Words{1, 2});
  Words host(2);
  const auto copy = [&](void* target, const void* source, cudaMemcpyKind kind) {
    EXPECT_EQ(cudaMemcpyAsync(target, source, 8, kind, stream_), cudaErrorInvalidValue);
  };
  copy(data, host.data(), cudaMemcpyDeviceToHost);
  expect_misuse("cudaMemcpyAsync", "the source should be memory of the device but is memory of the host");
  copy(host.data(), data, cudaMemcpyHostToDevice);
  expect_misuse("cudaMemcpyAsync", "the source should be memory of the host but is memory of the device");
  copy(data, host.data(), cudaMemcpyHostToHost);
  expect_misuse("cudaMemcpyAsync", "the target should be memory of the host but is memory of the device");
  copy(host.data(), data, cudaMemcpyDeviceToDevice);
  expect_misuse("cudaMemcpyAsync", "the target should be memory of the device but is memory of the host");
  EXPECT_EQ(cudaMemcpyAsync(host.data(), data, 8, cudaMemcpyDefault, stream_),
            cudaErrorInvalidMemcpyDirection);
  expect_misuse("cudaMemcpyAsync", "does not say from where to where");
  EXPECT_EQ(host, (Words{0, 0}));
}

TEST_F(SoftwareGpuMemory, CopiesPastTheEnd) {
  std::uint32_t* data = device_words(Words{1, 2});
  Words host(3);
  EXPECT_EQ(cudaMemcpyAsync(host.data(), data + 1, 8, cudaMemcpyDeviceToHost, stream_),
            cudaErrorInvalidValue);
  expect_misuse("cudaMemcpyAsync", "runs past the end of 'cudaMalloc of 8 bytes'");
  EXPECT_EQ(cudaMemcpyAsync(data, host.data(), 12, cudaMemcpyHostToDevice, stream_), cudaErrorInvalidValue);
  expect_misuse("cudaMemcpyAsync", "runs past the end of 'cudaMalloc of 8 bytes'");
  void* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, 4), cudaSuccess);
  EXPECT_EQ(cudaMemcpyAsync(pinned, data, 8, cudaMemcpyDeviceToHost, stream_), cudaErrorInvalidValue);
  expect_misuse("cudaMemcpyAsync", "runs past the end of 'cudaMallocHost of 4 bytes'");
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

TEST_F(SoftwareGpuMemory, CopiesOntoThemselves) {
  std::uint32_t* data = device_words(Words{1, 2, 3, 4});
  EXPECT_EQ(cudaMemcpyAsync(data + 1, data, 8, cudaMemcpyDeviceToDevice, stream_), cudaErrorInvalidValue);
  expect_misuse("cudaMemcpyAsync", "overlap");
  EXPECT_EQ(cudaMemcpyAsync(data + 2, data, 8, cudaMemcpyDeviceToDevice, stream_), cudaSuccess);
  expect_no_misuse();
}

TEST_F(SoftwareGpuMemory, PinnedMemoryIsTheHosts) {
  void* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, 8), cudaSuccess);
  std::memset(pinned, 7, 8);
  std::uint32_t* data = device_words(2);
  EXPECT_EQ(cudaMemcpyAsync(data, pinned, 8, cudaMemcpyHostToDevice, stream_), cudaSuccess);
  EXPECT_EQ(to_host(data, 2), Words(2, 0x07070707));
  expect_no_misuse();
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EXIT(std::memset(pinned, 7, 8), testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(SoftwareGpuMemory, LiveObjectsAreListed) {
  EXPECT_THAT(live_objects(), testing::ElementsAre("1 streams"));
  void* data = nullptr;
  void* pinned = nullptr;
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaMalloc(&data, 12), cudaSuccess);
  ASSERT_EQ(cudaMallocHost(&pinned, 34), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDefault), cudaSuccess);
  EXPECT_THAT(live_objects(), testing::ElementsAre("cudaMalloc of 12 bytes", "cudaMallocHost of 34 bytes",
                                                   "1 streams", "1 events"));
  EXPECT_EQ(cudaFree(data), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_THAT(live_objects(), testing::ElementsAre("1 streams"));
}

}  // namespace
}  // namespace hcp::software_gpu
