// Times of the attention kernels on device 0, and of a large matrix product to hold them against: a line
// each, "what mask milliseconds TFLOP/s", separated by tabs. bf16, 16 heads of dim 128.
//
//   attention_timings [TOKENS]    16384 unless said

#include <cstdint>
#include <exception>
#include <iomanip>
#include <iostream>
#include <optional>
#include <string>

#include "kernels/cuda/back_end.hpp"
#include "kernels/cuda/devices.hpp"
#include "tests/gpu_check/device_block.hpp"
#include "tests/gpu_check/gemm_time.hpp"
#include "tests/gpu_check/median_time.hpp"

namespace {

using hcp::gpu_check::DeviceBlock;
using hcp::gpu_check::median_time;

void print(const std::string& what, const std::string& mask, double seconds, double flops) {
  std::cout << what << '\t' << mask << '\t' << std::fixed << std::setprecision(3) << seconds * 1e3 << '\t'
            << std::setprecision(1) << flops / seconds / 1e12 << std::endl;
}

void time_attention(std::int64_t tokens) {
  hcp::BackEnd back_end = hcp::make_cuda_back_end(0);
  for (const bool causal : {false, true}) {
    const std::string mask = causal ? "causal" : "full";
    DeviceBlock block{back_end, {.tokens = tokens, .heads = 16, .head_dim = 128}, causal};
    print("forward pass", mask, median_time(back_end, "forward", [&] { block.forward_pass(); }),
          block.forward_flops());
    print("backward pass", mask, median_time(back_end, "backward", [&] { block.backward_pass(); }),
          block.backward_flops());
    print("backward kernels", mask, median_time(back_end, "backward", [&] { block.backward_block(); }),
          block.backward_flops());
    // Last, since it goes on where the forward pass has ended.
    print("forward kernel", mask, median_time(back_end, "forward", [&] { block.forward_block(); }),
          block.forward_flops());
  }
  if (const std::optional<hcp::gpu_check::GemmTime> gemm = hcp::gpu_check::time_gemm(back_end)) {
    print("gemm of cuBLAS", "8192", gemm->seconds, gemm->flops);
  } else {
    std::cerr << "gemm of cuBLAS: not measured, no cuBLAS can be loaded" << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int skipped = 77;
  try {
    const hcp::DeviceSearch search = hcp::find_devices();
    if (search.names.empty()) {
      std::cerr << "no device answers: " << search.reason << std::endl;
      return skipped;
    }
    time_attention(argc > 1 ? std::stoll(argv[1]) : 16384);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "attention_timings: " << error.what() << std::endl;
    return 1;
  }
}
