/// Runs kernels from their PTX on the CPU and checks every access: a test tool, without CUDA and without a
/// GPU.
///
/// Warps are executed as 32 lanes side by side. Lanes that branch differently run one after the other, those
/// with the smallest position in the code first, and join where they meet again; instructions that
/// synchronise lanes wait for all that they name. Warps of a block take turns at barriers. Races are found by
/// vector clocks and not by the schedule: two accesses of which no barrier orders one before the other are a
/// finding in every run. Lanes of one warp are ordered by __syncwarp and barriers only; atomics order
/// nothing.
///
/// What this is not: the sums inside of mma are those of fp32 in the order of k, then the accumulator, and
/// not the hardware's; ex2, lg2, rcp, rsqrt and tanh are exact to the last bit or two where .approx allows
/// more; payloads of NaN differ; a weak memory model is seen only as far as it shows as a race.
///
/// Measured on one core of a Zen 4: 0.10 us per warp instruction of a flash-attention forward with mma.sync
/// (bf16, head dims 64 and 128), 0.07 us without the search for races.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tests/ptx/device_memory.hpp"
#include "tests/ptx/kernel.hpp"
#include "tests/ptx/module.hpp"
#include "tests/ptx/report.hpp"

namespace hcp::ptx {

using Extent = std::array<std::uint32_t, 3>;  ///< x, y, z

struct Launch {
  const Kernel& kernel;
  Extent grid{1, 1, 1};
  Extent block{1, 1, 1};
  std::uint32_t dynamic_shared_bytes = 0;
  std::span<const std::byte> parameters;  ///< as the kernel's .param space has them: Kernel::parameters
};

struct RunOptions {
  bool races = true;       ///< find races, reads of uninitialised shared memory and data of pending copies
  bool footprint = false;  ///< fill Report::reads and Report::writes
  std::size_t max_findings = 10;                        ///< then the run ends
  std::uint64_t max_warp_instructions = 2'000'000'000;  ///< of a block; more count as an endless loop
  std::uint32_t max_shared_bytes = 227 * 1024;          ///< static and dynamic; of sm_80: 163 KiB
  unsigned schedule_seed = 0;                           ///< order of warps; 0: ascending
  int threads = 1;                                      ///< blocks at the same time
};

/// @throws std::invalid_argument if the launch itself is wrong: size of the parameters, threads, shared
/// memory
void check(const Launch& launch, const RunOptions& options);

/// @throws std::invalid_argument as check()
[[nodiscard]] Report run(const Launch& launch, Module& module, DeviceMemory& memory,
                         const RunOptions& options = {});

/// The parameter space of a kernel from pointers to its arguments, as cudaLaunchKernel takes them.
[[nodiscard]] std::vector<std::byte> pack_parameters(const Kernel& kernel, void* const* arguments);

}  // namespace hcp::ptx
