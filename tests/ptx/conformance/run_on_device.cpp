#include "kernels/buffer.hpp"
#include "kernels/cuda/back_end.hpp"
#include "kernels/cuda/launch.hpp"
#include "tests/ptx/conformance/micro_runs.hpp"

namespace hcp::ptx {
namespace {

std::uint32_t* words_of(const Buffer& buffer) {
  return reinterpret_cast<std::uint32_t*>(buffer.data());
}

}  // namespace

std::vector<std::uint32_t> run_on_device(const MicroKernel& kernel, std::span<const std::uint32_t> operands) {
  const BackEnd back_end = make_cuda_back_end(0);
  const std::size_t threads = operands.size() / kernel.operands.size();
  std::vector<std::uint32_t> results(threads * static_cast<std::size_t>(kernel.results));
  MemoryLedger ledger;
  const auto bytes_of = [](std::span<const std::uint32_t> words) {
    return static_cast<std::int64_t>(words.size_bytes());
  };
  const Buffer in{ledger, MemoryCategory::qkv, bytes_of(operands), *back_end.memory};
  const Buffer out{ledger, MemoryCategory::result, bytes_of(results), *back_end.memory};
  back_end.memory->copy_from_host(in.data(), reinterpret_cast<const std::byte*>(operands.data()), in.bytes());
  cuda::Launcher{back_end.stream}.launch({.function = kernel.function,
                                          .name = kernel.name.c_str(),
                                          .threads = warp_threads,
                                          .shared_bytes = kernel.shared_bytes},
                                         {.x = static_cast<std::int64_t>(threads) / warp_threads},
                                         MicroKernelWords{.in = words_of(in), .out = words_of(out)});
  back_end.memory->copy_to_host(reinterpret_cast<std::byte*>(results.data()), out.data(), out.bytes());
  return results;
}

}  // namespace hcp::ptx
