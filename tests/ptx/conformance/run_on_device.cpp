#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>

#include "kernels/cuda/check.hpp"
#include "kernels/cuda/device_memory.hpp"
#include "kernels/cuda/launch.hpp"
#include "tests/ptx/conformance/micro_runs.hpp"

namespace hcp::ptx {
namespace {

/// Words on the device while it lives.
class DeviceWords {
 public:
  DeviceWords(cuda::DeviceMemory& memory, std::size_t count)
      : memory_{memory},
        bytes_{static_cast<std::int64_t>(count * sizeof(std::uint32_t))},
        data_{memory.allocate(bytes_)} {}
  DeviceWords(const DeviceWords&) = delete;
  DeviceWords& operator=(const DeviceWords&) = delete;
  ~DeviceWords() { memory_.release(data_, bytes_); }

  [[nodiscard]] std::uint32_t* data() const { return reinterpret_cast<std::uint32_t*>(data_); }
  [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(bytes_); }

 private:
  cuda::DeviceMemory& memory_;
  std::int64_t bytes_;
  std::byte* data_;
};

}  // namespace

std::vector<std::uint32_t> run_on_device(const MicroKernel& kernel, std::span<const std::uint32_t> operands) {
  cuda::check(cudaSetDevice(0), "cudaSetDevice");
  const auto stream = std::make_shared<cuda::Stream>();
  cuda::DeviceMemory memory;
  const std::size_t threads = operands.size() / kernel.operands.size();
  std::vector<std::uint32_t> results(threads * static_cast<std::size_t>(kernel.results));
  const DeviceWords in{memory, operands.size()};
  const DeviceWords out{memory, results.size()};
  cuda::check(cudaMemcpyAsync(in.data(), operands.data(), in.bytes(), cudaMemcpyHostToDevice, stream->get()),
              "cudaMemcpyAsync of operands");
  cuda::Launcher{stream}.launch({.function = kernel.function,
                                 .name = kernel.name.c_str(),
                                 .threads = warp_threads,
                                 .shared_bytes = kernel.shared_bytes},
                                {.x = static_cast<std::int64_t>(threads) / warp_threads},
                                MicroKernelWords{.in = in.data(), .out = out.data()});
  cuda::check(cudaMemcpyAsync(results.data(), out.data(), out.bytes(), cudaMemcpyDeviceToHost, stream->get()),
              "cudaMemcpyAsync of results");
  stream->synchronise();
  return results;
}

}  // namespace hcp::ptx
