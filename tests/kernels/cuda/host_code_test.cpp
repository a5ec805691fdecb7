/// What the host does for a device besides its kernels: memory, streams and events, tables on their way, the
/// clock of phases.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <new>
#include <set>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "kernels/cuda/back_end.hpp"
#include "kernels/cuda/check.hpp"
#include "kernels/cuda/device_memory.hpp"
#include "kernels/cuda/device_phase_clock.hpp"
#include "kernels/cuda/devices.hpp"
#include "kernels/cuda/stream.hpp"
#include "kernels/cuda/table_upload.hpp"

namespace hcp::cuda {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(CudaDevices, AreFoundByName) {
  const DeviceSearch found = find_devices();
  ASSERT_FALSE(found.names.empty());
  EXPECT_FALSE(found.names.front().empty());
  EXPECT_EQ(found.reason, "");
}

TEST(CudaDevices, ThatAreNotThereAreRefused) {
  EXPECT_THAT([] { static_cast<void>(make_cuda_back_end(1000)); },
              ThrowsMessage<std::runtime_error>(
                  AllOf(HasSubstr("cudaSetDevice(1000): "), HasSubstr("(cudaErrorInvalidDevice)"))));
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);  // no later call is blamed
}

TEST(CudaDeviceMemory, GivesReleasedBuffersOfThatSizeOutAgain) {
  DeviceMemory memory{std::make_shared<Stream>()};
  EXPECT_EQ(memory.space(), MemorySpace::device);
  std::byte* first = memory.allocate(1000);
  std::byte* second = memory.allocate(1000);
  EXPECT_NE(first, second);
  memory.release(first, 1000);
  std::byte* other_size = memory.allocate(999);
  EXPECT_NE(other_size, first);
  EXPECT_EQ(memory.allocate(1000), first);
  memory.release(second, 1000);
  memory.release(first, 1000);
  memory.release(other_size, 999);
}

TEST(CudaDeviceMemory, ThatIsReleasedIsFreedWhereMoreIsNeeded) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  const auto most = static_cast<std::int64_t>(properties.totalGlobalMem / 8 * 5);
  DeviceMemory memory{std::make_shared<Stream>()};
  std::byte* first = memory.allocate(most);
  EXPECT_THROW(static_cast<void>(memory.allocate(most - 1)), std::bad_alloc);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  memory.release(first, most);
  std::byte* second = memory.allocate(most - 1);
  memory.release(second, most - 1);
}

TEST(CudaDeviceMemory, CopiesBetweenTheHostAndItself) {
  DeviceMemory memory{std::make_shared<Stream>()};
  const std::vector<std::byte> values{std::byte{1}, std::byte{2}, std::byte{3}};
  std::byte* data = memory.allocate(3);
  memory.copy_from_host(data, values.data(), 3);
  std::vector<std::byte> back(3);
  memory.copy_to_host(back.data(), data, 3);
  EXPECT_EQ(back, values);
  memory.release(data, 3);
}

TEST(CudaEvent, PassesAndTellsTime) {
  Stream stream;
  Event first{Event::Kind::time};
  EXPECT_TRUE(first.has_passed());
  first.synchronise();
  first.record(stream);
  Event second{Event::Kind::time};
  second.record(stream);
  stream.synchronise();
  EXPECT_TRUE(second.has_passed());
  EXPECT_GE(seconds_between(first, second), 0.0);
  EXPECT_EQ(seconds_between(first, first), 0.0);
}

TEST(CudaEvent, Moves) {
  Stream stream;
  Stream other;
  Event event{Event::Kind::order};
  CUevent_st* handle = event.get();
  Event moved{std::move(event)};
  EXPECT_EQ(moved.get(), handle);
  event = Event{Event::Kind::order};
  EXPECT_NE(event.get(), handle);
  event = std::move(moved);
  EXPECT_EQ(event.get(), handle);
  event.record(stream);
  other.wait_for(event);
  other.synchronise();
  EXPECT_TRUE(event.has_passed());
}

/// read() sets the device's clock by the host's, so they are never further apart than it takes.
TEST(CudaPhaseClock, TellsPhasesByTheHostsClock) {
  constexpr double resolution_s = 1e-5;  // of events, and more
  const auto stream = std::make_shared<Stream>();
  const std::unique_ptr<PhaseClock> clock = make_device_phase_clock(stream);
  for (int round = 0; round < 3; ++round) {
    const double set_s = now_s();
    EXPECT_TRUE(clock->read().empty());
    const double begin_s = now_s();
    const double apart_s = begin_s - set_s + resolution_s;
    for (std::size_t phase = 0; phase < 3; ++phase) {
      EXPECT_EQ(clock->begin("phase"), phase);
      clock->end();
    }
    const std::vector<PhaseClock::Interval> intervals = clock->read();
    ASSERT_EQ(intervals.size(), 3);
    double before_s = begin_s - apart_s;
    for (const PhaseClock::Interval& interval : intervals) {
      EXPECT_LE(before_s, interval.begin_s);
      EXPECT_LE(interval.begin_s, interval.end_s);
      before_s = interval.end_s;
    }
    EXPECT_LE(before_s, now_s() + apart_s);
  }
}

/// More uploads than there are places in the ring, of every size up to beyond the least capacity.
TEST(CudaTableUpload, TablesArriveSideBySide) {
  const auto stream = std::make_shared<Stream>();
  const auto memory = std::make_shared<DeviceMemory>(stream);
  TableUpload upload{stream, memory};
  std::vector<DeviceTables> uploaded;
  std::vector<std::vector<std::int32_t>> numbers;
  for (std::int32_t i = 0; i < 40; ++i) {
    const std::int32_t count =
        i == 20 || i == 21 ? 2'200'000 : i * i * 20;  // two that do not go into the ring
    std::vector<std::int32_t>& table = numbers.emplace_back(static_cast<std::size_t>(count));
    for (std::size_t k = 0; k < table.size(); ++k) {
      table[k] = i * 10'000'000 + static_cast<std::int32_t>(k);
    }
    std::vector<std::byte> three_bytes(3, static_cast<std::byte>(i));
    const std::span<const std::byte> tables[] = {three_bytes, {}, std::as_bytes(std::span{table})};
    uploaded.push_back(upload.upload(tables));
    table.push_back(-1);  // too late to matter
    three_bytes.assign(3, std::byte{255});
  }
  for (std::size_t i = 0; i < uploaded.size(); ++i) {
    const DeviceTables& tables = uploaded[i];
    const auto bytes = static_cast<std::int64_t>((numbers[i].size() - 1) * sizeof(std::int32_t));
    EXPECT_THAT(tables.offsets(), ElementsAre(0, 16, 16, 16 + (bytes + 15) / 16 * 16));
    EXPECT_EQ(tables.table<std::byte>(1), nullptr);
    EXPECT_EQ(static_cast<const void*>(tables.table<std::byte>(0)), tables.data());
    std::vector<std::byte> first(3);
    check(cudaMemcpyAsync(first.data(), tables.table<std::byte>(0), 3, cudaMemcpyDeviceToHost, stream->get()),
          "cudaMemcpyAsync");
    std::vector<std::int32_t> copied(numbers[i].size() - 1);
    if (i == 0) {
      EXPECT_EQ(tables.table<std::int32_t>(2), nullptr);
    } else {
      check(cudaMemcpyAsync(copied.data(), tables.table<std::int32_t>(2), static_cast<std::size_t>(bytes),
                            cudaMemcpyDeviceToHost, stream->get()),
            "cudaMemcpyAsync");
    }
    stream->synchronise();
    EXPECT_EQ(first, std::vector<std::byte>(3, static_cast<std::byte>(i)));
    numbers[i].pop_back();
    EXPECT_EQ(copied, numbers[i]) << i;
  }
}

TEST(CudaTableUpload, NothingOfEmptyTables) {
  const auto stream = std::make_shared<Stream>();
  TableUpload upload{stream, std::make_shared<DeviceMemory>(stream)};
  const std::span<const std::byte> tables[] = {{}, {}};
  const DeviceTables uploaded = upload.upload(tables);
  EXPECT_EQ(uploaded.table<std::byte>(0), nullptr);
  EXPECT_EQ(uploaded.table<std::byte>(1), nullptr);
}

}  // namespace
}  // namespace hcp::cuda
