/// The host's side of the CUDA back end: streams and events, memory, tables on their way to the device,
/// phases, refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "kernels/cuda/back_end.hpp"
#include "kernels/cuda/check.hpp"
#include "kernels/cuda/device_memory.hpp"
#include "kernels/cuda/stream.hpp"
#include "kernels/cuda/table_upload.hpp"
#include "tests/kernels/cuda/device_copy.hpp"
#include "tests/kernels/refused_arguments.hpp"

namespace hcp::test {
namespace {

using cuda::Event;

TEST(CudaBackEndParts, MemoryAndKernelAreOfTheDevice) {
  const CudaBackEnd back_end = make_cuda_back_end(0);
  EXPECT_EQ(back_end.memory->space(), MemorySpace::device);
  EXPECT_EQ(back_end.kernel->memory_space(), MemorySpace::device);
}

TEST(CudaBackEndParts, ADeviceThatDoesNotAnswerIsNamed) {
  try {
    static_cast<void>(make_cuda_back_end(1000));
    FAIL() << "device 1000 answered";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("cudaSetDevice(1000)"));
  }
  EXPECT_NO_THROW(static_cast<void>(make_cuda_back_end(0)));  // the error is not remembered
}

TEST(CudaBackEndParts, ArgumentsThatDisagreeAreRefused) {
  expect_refusals(*make_cuda_back_end(0).kernel);
}

TEST(CudaEvents, PassAfterWhatTheStreamWasAskedFor) {
  CudaBackEnd back_end = make_cuda_back_end(0);
  constexpr std::int64_t count = 100'000;
  const DeviceCopy values{*back_end.stream, nullptr, count * std::int64_t{sizeof(float)}};
  Event event{Event::Kind::order};
  EXPECT_TRUE(event.has_passed());
  event.synchronise();
  back_end.kernel->fill(values.floats(), count, 2.0F);
  event.record(*back_end.stream);
  event.synchronise();
  EXPECT_TRUE(event.has_passed());
  std::vector<float> results(count);
  values.read(results.data());
  EXPECT_THAT(results, testing::Each(2.0F));
}

TEST(CudaEvents, OneStreamWaitsForAnother) {
  CudaBackEnd first = make_cuda_back_end(0);
  CudaBackEnd second = make_cuda_back_end(0);
  constexpr std::int64_t count = 100'000;
  constexpr std::int64_t bytes = count * std::int64_t{sizeof(float)};
  const DeviceCopy source{*first.stream, nullptr, bytes};
  const DeviceCopy target{*second.stream, nullptr, bytes};
  for (int i = 0; i <= 20; ++i) {
    first.kernel->fill(source.floats(), count, static_cast<float>(i));
  }
  Event filled{Event::Kind::order};
  filled.record(*first.stream);
  second.stream->wait_for(filled);
  second.kernel->copy_rows({source.data(), DataType::fp32, count}, {target.data(), DataType::fp32, count}, 1,
                           count);
  std::vector<float> results(count);
  target.read(results.data());
  EXPECT_THAT(results, testing::Each(20.0F));
}

TEST(CudaEvents, AreMovedWithWhatTheyMark) {
  CudaBackEnd back_end = make_cuda_back_end(0);
  std::vector<Event> marks;
  for (int i = 0; i < 5; ++i) {
    marks.emplace_back(Event::Kind::time);
    marks.back().record(*back_end.stream);
  }
  Event last{std::move(marks.back())};
  std::swap(last, marks.front());
  back_end.stream->synchronise();
  EXPECT_LE(0.0, cuda::seconds_between(last, marks[1]));
  EXPECT_LE(cuda::seconds_between(last, marks[1]), cuda::seconds_between(last, marks.front()));
}

TEST(CudaDeviceMemory, GivesOutAgainWhatWasReleased) {
  const CudaBackEnd back_end = make_cuda_back_end(0);
  MemorySource& memory = *back_end.memory;
  std::byte* const first = memory.allocate(1000);
  std::byte* const second = memory.allocate(1000);
  EXPECT_NE(first, second);
  for (const std::byte* data : {first, second}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 64, 0U);
  }
  memory.release(first, 1000);
  std::byte* const other = memory.allocate(1001);
  EXPECT_NE(other, first);
  EXPECT_EQ(memory.allocate(1000), first);
  memory.release(first, 1000);
  memory.release(second, 1000);
  memory.release(other, 1001);
}

TEST(CudaDeviceMemory, MoreThanThereIsIsAnErrorOnlyOnce) {
  const CudaBackEnd back_end = make_cuda_back_end(0);
  MemorySource& memory = *back_end.memory;
  memory.release(memory.allocate(1000), 1000);
  EXPECT_THROW(static_cast<void>(memory.allocate(std::int64_t{1} << 50)), std::bad_alloc);
  std::byte* const data = memory.allocate(1000);
  back_end.kernel->fill(reinterpret_cast<float*>(data), 250, 1.0F);
  back_end.stream->synchronise();
  memory.release(data, 1000);
}

TEST(CudaDeviceMemory, BuffersOfItAreBooked) {
  const CudaBackEnd back_end = make_cuda_back_end(0);
  MemoryLedger ledger;
  {
    const Buffer buffer{ledger, MemoryCategory::kv_ring, 4096, *back_end.memory};
    EXPECT_EQ(ledger.live(MemoryCategory::kv_ring), 4096);
  }
  EXPECT_EQ(ledger.live(MemoryCategory::kv_ring), 0);
}

/// Two tables of each upload: bytes that count, and one as long as the first.
std::vector<std::byte> table_of(int upload, std::size_t bytes) {
  std::vector<std::byte> table;
  for (std::size_t i = 0; i < bytes; ++i) {
    table.push_back(static_cast<std::byte>((static_cast<std::size_t>(upload) * 31 + i) % 251));
  }
  return table;
}

TEST(CudaTableUpload, ManyMoreThanTheRingHasPlacesArriveWhole) {
  const auto stream = std::make_shared<cuda::Stream>();
  const auto memory = std::make_shared<cuda::DeviceMemory>();
  cuda::TableUpload upload{stream, memory};
  std::vector<cuda::DeviceTables> on_device;
  const auto bytes_of = [](int i) { return static_cast<std::size_t>(1 + i * i * 97); };  // 64 KiB and more
  constexpr int uploads = 50;
  for (int i = 0; i < uploads; ++i) {
    const std::vector<std::byte> first = table_of(i, bytes_of(i));
    const std::vector<std::byte> second = table_of(i + 100, 5);
    const std::span<const std::byte> tables[]{first, {}, second};
    on_device.push_back(upload.upload(tables));
  }
  for (int i = 0; i < uploads; ++i) {
    const cuda::DeviceTables& tables = on_device[static_cast<std::size_t>(i)];
    EXPECT_EQ(tables.table<std::byte>(1), nullptr);
    EXPECT_THAT(tables.offsets(),
                testing::Each(testing::Truly([](auto offset) { return offset % 16 == 0; })));
    for (const auto& [index, expected] :
         {std::pair{0, table_of(i, bytes_of(i))}, std::pair{2, table_of(i + 100, 5)}}) {
      std::vector<std::byte> read(expected.size());
      cuda::check(cudaMemcpyAsync(read.data(), tables.table<std::byte>(static_cast<std::size_t>(index)),
                                  read.size(), cudaMemcpyDeviceToHost, stream->get()),
                  "cudaMemcpyAsync");
      stream->synchronise();
      ASSERT_EQ(read, expected) << i;
    }
  }
}

TEST(CudaTableUpload, TablesWithoutBytesNeedNoCopy) {
  const auto stream = std::make_shared<cuda::Stream>();
  cuda::TableUpload upload{stream, std::make_shared<cuda::DeviceMemory>()};
  const std::span<const std::byte> tables[]{{}, {}};
  const cuda::DeviceTables nothing = upload.upload(tables);
  EXPECT_EQ(nothing.table<int>(0), nullptr);
  EXPECT_EQ(nothing.table<int>(1), nullptr);
}

TEST(CudaPhaseClock, PhasesAreNumberedAndFollowEachOther) {
  CudaBackEnd back_end = make_cuda_back_end(0);
  PhaseClock& clock = *back_end.clock;
  const DeviceCopy values{*back_end.stream, nullptr, 4000};
  for (int reading = 0; reading < 3; ++reading) {  // with more phases, with fewer
    const std::size_t phases = reading == 1 ? 7 : 3;
    const double before_s = now_s();
    for (std::size_t i = 0; i < phases; ++i) {
      EXPECT_EQ(clock.begin("fill"), i);
      back_end.kernel->fill(values.floats(), 1000, 1.0F);
      clock.end();
    }
    const std::vector<PhaseClock::Interval> intervals = clock.read();
    const double after_s = now_s();
    ASSERT_EQ(intervals.size(), phases);
    constexpr double apart_s = 1.0;  // far more than the clocks may be, and than the zeros of two clocks
    double last_s = before_s - apart_s;
    for (const PhaseClock::Interval& interval : intervals) {
      EXPECT_LE(last_s, interval.begin_s);
      EXPECT_LE(interval.begin_s, interval.end_s);
      last_s = interval.end_s;
    }
    EXPECT_LE(last_s, after_s + apart_s);
  }
  EXPECT_TRUE(clock.read().empty());
}

}  // namespace
}  // namespace hcp::test
