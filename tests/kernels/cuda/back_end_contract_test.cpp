/// What the CUDA back end promises to those who use it together with others: whose memory, which order, what
/// it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "kernels/cuda/back_end.hpp"
#include "kernels/cuda/stream.hpp"
#include "tests/kernels/cuda/device_copy.hpp"
#include "tests/kernels/refused_arguments.hpp"

namespace hcp::test {
namespace {

TEST(CudaBackEndContract, BuffersAreOfTheDeviceAlignedAndBooked) {
  const BackEnd back_end = make_cuda_back_end(0);
  EXPECT_EQ(back_end.memory->space(), MemorySpace::device);
  EXPECT_EQ(back_end.kernel->memory_space(), MemorySpace::device);
  MemoryLedger ledger;
  for (const std::int64_t bytes : {1, 1000, 4096}) {
    const Buffer buffer{ledger, MemoryCategory::kv_ring, bytes, *back_end.memory};
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0U);
    EXPECT_EQ(ledger.live(MemoryCategory::kv_ring), bytes);
  }
  EXPECT_EQ(ledger.live(MemoryCategory::kv_ring), 0);
}

TEST(CudaBackEndContract, ArgumentsThatDisagreeAreRefused) {
  expect_refusals(*make_cuda_back_end(0).kernel);
}

TEST(CudaBackEndContract, OneStreamWaitsForAnother) {
  BackEnd first = make_cuda_back_end(0);
  BackEnd second = make_cuda_back_end(0);
  constexpr std::int64_t count = 100'000;
  constexpr std::int64_t bytes = count * std::int64_t{sizeof(float)};
  const DeviceCopy source{*first.stream, nullptr, bytes};
  const DeviceCopy target{*second.stream, nullptr, bytes};
  for (int i = 0; i <= 20; ++i) {
    first.kernel->fill(source.floats(), count, static_cast<float>(i));
  }
  cuda::Event filled{cuda::Event::Kind::order};
  filled.record(*first.stream);
  second.stream->wait_for(filled);
  second.kernel->copy_rows({source.data(), DataType::fp32, count}, {target.data(), DataType::fp32, count}, 1,
                           count);
  std::vector<float> results(count);
  target.read(results.data());
  EXPECT_THAT(results, testing::Each(20.0F));
}

}  // namespace
}  // namespace hcp::test
