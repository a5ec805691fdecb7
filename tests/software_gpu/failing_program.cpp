/// Tests that must turn red, and one that must not: see check_main.sh.
#include "tests/software_gpu/runtime_case.hpp"

namespace hcp::software_gpu {
namespace {

class Main : public Runtime {};

TEST_F(Main, Passes) {
  std::uint32_t* out = device_words(1);
  ASSERT_EQ(launch(define_kernel("st.global.u32 [%d9], %r39;"), out, out, stream_, 1), cudaSuccess);
  EXPECT_EQ(to_host(out, 1), std::vector<std::uint32_t>{0});
}

TEST_F(Main, LeavesAFinding) {
  std::uint32_t* out = device_words(1);
  ASSERT_EQ(launch(define_kernel("st.global.u32 [%d9+4], %r39;"), out, out, stream_, 1), cudaSuccess);
}

TEST_F(Main, LeavesAMisuse) {
  EXPECT_EQ(to_host(device_words(1), 1).size(), 1);
}

TEST_F(Main, LeavesMemory) {
  void* data = nullptr;
  ASSERT_EQ(cudaMalloc(&data, 12), cudaSuccess);
}

}  // namespace
}  // namespace hcp::software_gpu
