// What is timed is the whole of both passes: on the software GPU, which finds what is read before it is
// written.

#include "tests/gpu_check/device_block.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/cuda/back_end.hpp"
#include "tests/gpu_check/median_time.hpp"
#include "tests/software_gpu/software_gpu.hpp"

namespace hcp::gpu_check {
namespace {

/// @param kernel  a part of its mangled name
std::ptrdiff_t launches_of(const std::string& kernel, const std::vector<software_gpu::Launch>& launches) {
  return std::ranges::count_if(
      launches, [&](const auto& launch) { return launch.kernel.find(kernel) != std::string::npos; });
}

TEST(DeviceBlock, FlopsAreThoseOfTheVisiblePairs) {
  BackEnd back_end = make_cuda_back_end(0);
  const BlockSize size{.tokens = 100, .heads = 3, .head_dim = 128};
  EXPECT_EQ((DeviceBlock{back_end, size, false}.forward_flops()), 4.0 * 100 * 100 * 3 * 128);
  EXPECT_EQ((DeviceBlock{back_end, size, true}.forward_flops()), 4.0 * 5050 * 3 * 128);
  EXPECT_EQ((DeviceBlock{back_end, size, true}.backward_flops()), 10.0 * 5050 * 3 * 128);
}

TEST(DeviceBlock, EveryCallOfAPassDoesItsWork) {
  BackEnd back_end = make_cuda_back_end(0);
  DeviceBlock block{back_end, {.tokens = 40, .heads = 1, .head_dim = 128}, true};
  static_cast<void>(software_gpu::take_launches());
  static_cast<void>(median_time(back_end, "forward", [&] { block.forward_pass(); }));
  static_cast<void>(median_time(back_end, "backward", [&] { block.backward_pass(); }));
  const std::vector<software_gpu::Launch> launches = software_gpu::take_launches();
  for (const software_gpu::Launch& launch : launches) {
    for (const ptx::Finding& finding : launch.report.findings) {
      ADD_FAILURE() << to_string(finding);
    }
  }
  constexpr std::ptrdiff_t calls = 14;
  EXPECT_EQ(launches_of("4fillE", launches), 6 * calls);
  EXPECT_EQ(launches_of("7forwardI", launches), calls);
  EXPECT_EQ(launches_of("14finish_forwardE", launches), calls);
  EXPECT_EQ(launches_of("7row_dotI", launches), calls);
  EXPECT_EQ(launches_of("16backward_queriesI", launches), calls);
  EXPECT_EQ(launches_of("13backward_keysI", launches), calls);  // at this head dim one for dk and dv
  EXPECT_EQ(launches_of("9copy_rowsI", launches), 4 * calls);
}

}  // namespace
}  // namespace hcp::gpu_check
