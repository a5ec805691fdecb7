#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>

#include "tests/ptx/conformance/micro_runs.hpp"
#include "tests/ptx/interpreter.hpp"

namespace hcp::ptx {

std::vector<std::uint32_t> run_on_interpreter(const MicroKernel& kernel,
                                              std::span<const std::uint32_t> operands) {
  static Module module = Module::load(micro_kernels_ptx());
  const std::size_t threads = operands.size() / kernel.operands.size();
  std::vector<std::uint32_t> results(threads * static_cast<std::size_t>(kernel.results));
  DeviceMemory memory;
  memory.add_read_only(operands.data(), operands.size_bytes(), "in");
  memory.add_uninitialised(results.data(), results.size() * sizeof(std::uint32_t), "out");
  const MicroKernelWords words{.in = operands.data(), .out = results.data()};
  const Report report = run({.kernel = module.kernel(kernel.name),
                             .grid = {static_cast<std::uint32_t>(threads / warp_threads), 1, 1},
                             .block = {warp_threads, 1, 1},
                             .dynamic_shared_bytes = static_cast<std::uint32_t>(kernel.shared_bytes),
                             .parameters = std::as_bytes(std::span{&words, 1})},
                            module, memory);
  if (!report.findings.empty()) {
    throw std::runtime_error{to_string(report.findings.front())};
  }
  return results;
}

}  // namespace hcp::ptx
