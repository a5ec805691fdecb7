#include "tests/ptx/interpreter.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include "tests/ptx/block.hpp"
#include "tests/ptx/global_memory.hpp"
#include "tests/ptx/launch_state.hpp"

namespace hcp::ptx {

void check(const Launch& launch, const RunOptions& options) {
  const Kernel& kernel = launch.kernel;
  const auto refuse_launch = [&](const std::string& what) {
    throw std::invalid_argument{"launch of " + kernel.name + ": " + what};
  };
  if (launch.parameters.size() != kernel.parameter_bytes) {
    refuse_launch(std::to_string(launch.parameters.size()) + " bytes of parameters, the kernel takes " +
                  std::to_string(kernel.parameter_bytes));
  }
  const std::uint64_t threads = std::uint64_t{launch.block[0]} * launch.block[1] * launch.block[2];
  if (threads == 0 || threads > kernel.max_threads) {
    refuse_launch(std::to_string(threads) + " threads per block, the kernel allows 1 to " +
                  std::to_string(kernel.max_threads));
  }
  if (std::ranges::count(launch.grid, 0U) > 0 || launch.grid[1] > 65535 || launch.grid[2] > 65535) {
    refuse_launch("a grid of " + std::to_string(launch.grid[0]) + " x " + std::to_string(launch.grid[1]) +
                  " x " + std::to_string(launch.grid[2]) + " blocks");
  }
  const std::uint64_t shared = std::uint64_t{kernel.static_shared_bytes} + launch.dynamic_shared_bytes;
  if (shared > options.max_shared_bytes) {
    refuse_launch(std::to_string(shared) + " bytes of shared memory, at most " +
                  std::to_string(options.max_shared_bytes) + " are allowed");
  }
}

namespace {

/// Makes the variables of a module device memory for the time of a launch.
class ModuleMemory {
 public:
  ModuleMemory(Module& module, DeviceMemory& memory) : memory_{memory} {
    for (const auto& variable : module.variables()) {
      if (variable->writable) {
        memory.add(variable->storage.data(), variable->storage.size(), variable->name);
      } else {
        memory.add_read_only(variable->storage.data(), variable->storage.size(), variable->name);
      }
      added_.push_back(variable->storage.data());
    }
  }
  ModuleMemory(const ModuleMemory&) = delete;
  ModuleMemory& operator=(const ModuleMemory&) = delete;
  ~ModuleMemory() {
    for (const std::byte* base : added_) {
      memory_.remove(base);
    }
  }

 private:
  DeviceMemory& memory_;
  std::vector<const std::byte*> added_;
};

struct BlockResult {
  std::uint64_t block = 0;
  std::vector<Finding> findings;
};

void collect(std::vector<BlockResult>& results, std::size_t max_findings, Report& report) {
  std::ranges::sort(results, {}, &BlockResult::block);
  for (BlockResult& result : results) {
    for (Finding& finding : result.findings) {
      if (report.findings.size() < max_findings) {
        report.findings.push_back(std::move(finding));
      }
    }
  }
}

}  // namespace

Report run(const Launch& launch, Module& module, DeviceMemory& memory, const RunOptions& options) {
  check(launch, options);
  const ModuleMemory variables{module, memory};
  GlobalMemory global{memory, launch.kernel.global_access_bytes, options.races, options.footprint};
  const LaunchState state{launch.kernel,     launch.grid, launch.block, launch.dynamic_shared_bytes,
                          launch.parameters, options,     global};
  Report report;
  std::vector<BlockResult> results;
  std::size_t found = 0;
  std::exception_ptr error;  // must not leave the parallel region
  const std::int64_t blocks = std::int64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
#pragma omp parallel num_threads(options.threads) if (options.threads > 1)
  {
    Block block{state};
#pragma omp for schedule(dynamic)
    for (std::int64_t i = 0; i < blocks; ++i) {
      bool goes_on = false;
#pragma omp critical(hcp_ptx_results)
      goes_on = found < options.max_findings && !error;
      if (!goes_on) {
        continue;
      }
      std::exception_ptr thrown;
      try {
        const auto x = static_cast<std::uint32_t>(i % launch.grid[0]);
        const auto y = static_cast<std::uint32_t>(i / launch.grid[0] % launch.grid[1]);
        block.run({x, y, static_cast<std::uint32_t>(i / launch.grid[0] / launch.grid[1])});
      } catch (...) {
        thrown = std::current_exception();
      }
#pragma omp critical(hcp_ptx_results)
      {
        error = error ? error : thrown;
        report.counters.add(block.counters());
        found += block.findings().size();
        results.push_back({static_cast<std::uint64_t>(i), std::move(block.findings())});
      }
    }
  }
  if (error) {
    std::rethrow_exception(error);
  }
  collect(results, options.max_findings, report);
  global.write_footprint(report);
  return report;
}

std::vector<std::byte> pack_parameters(const Kernel& kernel, void* const* arguments) {
  std::vector<std::byte> packed(kernel.parameter_bytes);
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
    const Kernel::Parameter& parameter = kernel.parameters[i];
    std::memcpy(packed.data() + parameter.offset, arguments[i], parameter.bytes);
  }
  return packed;
}

}  // namespace hcp::ptx
