/// Launches on the software GPU: parameters, limits, and what the interpreter finds.
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/ptx/ptx_case.hpp"
#include "tests/software_gpu/runtime_case.hpp"

extern "C" {
cudaError_t __cudaGetKernel(cudaKernel_t*, const void*);
cudaError_t __cudaPopCallConfiguration(dim3*, dim3*, std::size_t*, void*);
cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3, dim3, void**, std::size_t, cudaStream_t);
}

namespace hcp::software_gpu {
namespace {

using testing::HasSubstr;
using Words = std::vector<std::uint32_t>;

/// out[thread of the grid] = in[0] + thread of the grid
const std::string add_thread = R"(
  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mad.lo.u32 %r2, %r0, %r1, %r39;
  ld.global.u32 %r3, [%d8]; add.u32 %r3, %r3, %r2;
  mul.wide.u32 %d0, %r2, 4; add.u64 %d0, %d0, %d9; st.global.u32 [%d0], %r3;)";

/// One thread writes 7 to out.
const std::string write_seven = "mov.u32 %r0, 7; st.global.u32 [%d9], %r0;";

class SoftwareGpuLaunch : public Runtime {
 protected:
  ~SoftwareGpuLaunch() override {
    load_built_ptx("compute_90");
    set_run_options({});
  }
  /// The findings of the one launch since the last look.
  static std::vector<ptx::Finding> findings() {
    const std::vector<Launch> launches = take_launches();
    EXPECT_EQ(launches.size(), 1);
    return launches.empty() ? std::vector<ptx::Finding>{} : launches[0].report.findings;
  }
  /// There is one, of this kind, with these words.
  static void expect_finding(ptx::FindingKind kind, const std::string& words) {
    const std::vector<ptx::Finding> found = findings();
    ASSERT_EQ(found.size(), 1);
    EXPECT_EQ(found[0].kind, kind);
    EXPECT_THAT(found[0].message, HasSubstr(words));
  }
};

TEST_F(SoftwareGpuLaunch, RunsTheKernelOfTheFunction) {
  const void* kernel = define_kernel(add_thread);
  const std::uint32_t* in = device_words(Words{100});
  std::uint32_t* out = device_words(4);
  ASSERT_EQ(launch(kernel, in, out, stream_, 2, 2), cudaSuccess);
  EXPECT_EQ(to_host(out, 4), (Words{100, 101, 102, 103}));  // and has written them
  const std::vector<Launch> launches = take_launches();
  ASSERT_EQ(launches.size(), 1);
  EXPECT_EQ(launches[0].kernel, "test");
  EXPECT_TRUE(launches[0].report.findings.empty());
  EXPECT_EQ(launches[0].report.counters.global_store_bytes, 16);
  EXPECT_TRUE(take_launches().empty());
  expect_no_misuse();
}

TEST_F(SoftwareGpuLaunch, TheLastPtxOfAKernelCounts) {
  std::uint32_t* out = device_words(1);
  const void* kernel = define_kernel(write_seven);
  define_kernel("mov.u32 %r0, 8; st.global.u32 [%d9], %r0;");
  ASSERT_EQ(launch(kernel, out, out, stream_, 1), cudaSuccess);
  EXPECT_EQ(to_host(out, 1), Words{8});
  EXPECT_THROW(load_ptx("nonsense"), std::invalid_argument);
  ASSERT_EQ(launch(kernel, out, out, stream_, 1), cudaSuccess);
  EXPECT_EQ(to_host(out, 1), Words{8});
  EXPECT_EQ(take_launches().size(), 2);
}

TEST_F(SoftwareGpuLaunch, ReadsOfWhatNobodyWrote) {
  const void* kernel = define_kernel(add_thread);
  const std::uint32_t* in = device_words(1);
  std::uint32_t* out = device_words(1);
  ASSERT_EQ(launch(kernel, in, out, stream_, 1), cudaSuccess);
  expect_finding(ptx::FindingKind::uninitialised_read, "'cudaMalloc of 4 bytes'");
}

TEST_F(SoftwareGpuLaunch, AccessPastTheEnd) {
  const void* kernel = define_kernel(add_thread);
  const std::uint32_t* in = device_words(Words{1});
  std::uint32_t* out = device_words(3);
  ASSERT_EQ(launch(kernel, in, out, stream_, 4), cudaSuccess);
  expect_finding(ptx::FindingKind::out_of_bounds, "outside of all device memory");
  EXPECT_EQ(to_host(out, 3), (Words{1, 2, 3}));
}

TEST_F(SoftwareGpuLaunch, AccessToFreedMemory) {
  const void* kernel = define_kernel(write_seven);
  void* out = nullptr;
  ASSERT_EQ(cudaMalloc(&out, 4), cudaSuccess);
  ASSERT_EQ(cudaFree(out), cudaSuccess);
  device_words(1);  // does not get that place
  ASSERT_EQ(launch(kernel, out, out, stream_, 1), cudaSuccess);
  expect_finding(ptx::FindingKind::out_of_bounds, "in freed memory");
}

TEST_F(SoftwareGpuLaunch, AccessToMemoryOfTheHost) {
  const void* kernel = define_kernel(write_seven);
  void* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, 4), cudaSuccess);
  ASSERT_EQ(launch(kernel, pinned, pinned, stream_, 1), cudaSuccess);
  expect_finding(ptx::FindingKind::out_of_bounds, "in pinned memory of the host");
  std::uint32_t pageable = 0;
  ASSERT_EQ(launch(kernel, &pageable, &pageable, stream_, 1), cudaSuccess);
  expect_finding(ptx::FindingKind::out_of_bounds, "outside of all device memory");
  EXPECT_EQ(pageable, 0);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

TEST_F(SoftwareGpuLaunch, RacesAsRunOptionsSay) {
  const void* kernel = define_kernel(write_seven);
  std::uint32_t* out = device_words(1);
  ASSERT_EQ(launch(kernel, out, out, stream_, 2), cudaSuccess);
  EXPECT_EQ(ptx::kinds_of({.findings = findings(), .counters = {}, .reads = {}, .writes = {}}),
            std::vector{ptx::FindingKind::race});
  ptx::RunOptions options;
  options.races = false;
  set_run_options(options);
  ASSERT_EQ(launch(kernel, out, out, stream_, 2), cudaSuccess);
  EXPECT_TRUE(findings().empty());
}

TEST_F(SoftwareGpuLaunch, MoreSharedMemoryMustBeAskedFor) {
  const void* kernel = define_kernel(write_seven);
  std::uint32_t* out = device_words(1);
  constexpr std::size_t free_bytes = 48 << 10;
  const auto launch_with = [&](std::size_t bytes) { return launch(kernel, out, out, stream_, 1, 1, bytes); };
  EXPECT_EQ(launch_with(free_bytes), cudaSuccess);
  expect_no_misuse();
  EXPECT_EQ(launch_with(free_bytes + 1), cudaErrorInvalidValue);
  expect_misuse("cudaLaunchKernel", "test with 49153 bytes of shared memory that were not asked for");
  const auto attribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
  EXPECT_EQ(cudaFuncSetAttribute(kernel, attribute, 60 << 10), cudaSuccess);
  EXPECT_EQ(launch_with(60 << 10), cudaSuccess);
  expect_no_misuse();
  EXPECT_EQ(launch_with((60 << 10) + 1), cudaErrorInvalidValue);
  expect_misuse("cudaLaunchKernel", "not asked for");
  EXPECT_EQ(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 50),
            cudaErrorInvalidValue);
  expect_misuse("cudaFuncSetAttribute", "is not known here");
  EXPECT_EQ(take_launches().size(), 2);
  EXPECT_EQ(cudaFuncSetAttribute(kernel, attribute, 0), cudaSuccess);
}

TEST_F(SoftwareGpuLaunch, ArchitecturesDifferInSharedMemory) {
  const void* kernel = define_kernel("");
  const auto ask = [&](int kib) {
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kib << 10);
  };
  cudaDeviceProp properties{};
  load_built_ptx("compute_80");
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_EQ(properties.major * 10 + properties.minor, 80);
  EXPECT_EQ(ask(163), cudaSuccess);
  EXPECT_EQ(ask(164), cudaErrorInvalidValue);
  load_built_ptx("compute_90");
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_EQ(properties.major * 10 + properties.minor, 90);
  EXPECT_EQ(ask(227), cudaSuccess);
  EXPECT_EQ(ask(228), cudaErrorInvalidValue);
  EXPECT_EQ(ask(0), cudaSuccess);
  EXPECT_THROW(load_built_ptx("compute_75"), std::invalid_argument);
  expect_no_misuse();  // a program may ask
}

TEST_F(SoftwareGpuLaunch, WrongBlocksAndGrids) {
  const void* kernel = define_kernel("");
  std::uint32_t* out = device_words(1);
  EXPECT_EQ(launch(kernel, out, out, stream_, 1025), cudaErrorInvalidConfiguration);
  expect_misuse("cudaLaunchKernel", "1025 threads per block");
  EXPECT_EQ(launch(kernel, out, out, stream_, 1, dim3{1, 65536}), cudaErrorInvalidConfiguration);
  expect_misuse("cudaLaunchKernel", "65536");
  EXPECT_EQ(launch(kernel, out, out, stream_, 1, 0), cudaErrorInvalidConfiguration);
  expect_misuse("cudaLaunchKernel", "a grid of 0");
  EXPECT_TRUE(take_launches().empty());
}

TEST_F(SoftwareGpuLaunch, FunctionsWithoutAKernel) {
  std::uint32_t* out = device_words(1);
  static const char other = 0;
  EXPECT_EQ(launch(&other, out, out, stream_, 1), cudaErrorInvalidDeviceFunction);
  expect_misuse("cudaLaunchKernel", "stands for no kernel");
  EXPECT_EQ(cudaFuncSetAttribute(&other, cudaFuncAttributeMaxDynamicSharedMemorySize, 1),
            cudaErrorInvalidDeviceFunction);
  expect_misuse("cudaFuncSetAttribute", "stands for no kernel");
  register_function(&other, "absent");
  EXPECT_EQ(launch(&other, out, out, stream_, 1), cudaErrorNoKernelImageForDevice);
  expect_misuse("cudaLaunchKernel", "no PTX was loaded for absent");
}

/// The product launches in one place, and not so.
TEST_F(SoftwareGpuLaunch, LaunchesByTripleChevrons) {
  dim3 dimensions;
  EXPECT_NE(__cudaPopCallConfiguration(&dimensions, &dimensions, nullptr, nullptr), cudaSuccess);
  expect_misuse("__cudaPopCallConfiguration", "<<<>>>");
  EXPECT_NE(__cudaGetKernel(nullptr, nullptr), cudaSuccess);
  expect_misuse("__cudaGetKernel", "<<<>>>");
  EXPECT_NE(__cudaLaunchKernel(nullptr, 1, 1, nullptr, 0, stream_), cudaSuccess);
  expect_misuse("__cudaLaunchKernel", "<<<>>>");
}

}  // namespace
}  // namespace hcp::software_gpu
