/// A GPU in software, to run the product's host code for devices where there is none: a double of that part
/// of the CUDA runtime that the product calls, linked in its stead. Kernels run from their PTX through the
/// interpreter (tests/ptx) with all of its checks, and the calls themselves are checked, too. Only programs
/// that are linked with the double have this header's functions.
///
/// Device memory is NaN until it is written; a host that touches it ends with a segmentation fault. Addresses
/// are never given out twice, so what was freed stays out of bounds. Kernels may not touch pinned memory,
/// though devices could.
///
/// What this is not: every operation is done at once, in the order of the calls, so a missing wait for
/// another stream goes unnoticed; a kernel with findings is no error of the runtime; there is one device.
/// No hardware was used, and no time that it tells means anything.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/ptx/interpreter.hpp"

namespace hcp::software_gpu {

/// Kernels of the same name are replaced. @throws std::invalid_argument as ptx::Module::load
void load_ptx(std::string_view text);

/// The PTX of this build, and the limits of that architecture; each file is decoded when one of its kernels
/// is launched.
/// @param architecture  compute_80 or compute_90
/// @throws std::invalid_argument for another one, std::runtime_error if a file cannot be read
void load_built_ptx(std::string_view architecture);

/// When operations of streams run from now on. 0: at once, in the order of the calls, unchecked; anything
/// else: late, in an order drawn from this seed (Schedule), with all accesses to memory checked for order.
/// First runs all that was asked for so far.
void set_schedule(unsigned seed);

/// Runs all that streams were asked for. A finding, if something cannot be done. For the end of a test or
/// program: nothing arrives at the host any more.
void finish_streams();

/// As the environment says, else as stands here:
///   HCP_SOFTWARE_GPU_ARCHITECTURE=compute_90   for load_built_ptx
///   HCP_SOFTWARE_GPU_SCHEDULE=0                for set_schedule
///   HCP_SOFTWARE_GPU_BUG=                      <name>:<nth> for plant (planted_bugs.hpp); none
///   HCP_SOFTWARE_GPU_DEVICES=1                 installed; CUDA_VISIBLE_DEVICES takes some of them, by number
/// @return architecture, schedule and bug in words
/// @throws std::invalid_argument for a value that means nothing
std::string configure_from_environment();

/// How long a call waits while nothing moves; then it fails, with a finding. 60 s at first.
void set_patience(double seconds);

/// Of all launches to come. The limit of shared memory is that of the architecture.
void set_run_options(const ptx::RunOptions& options);

struct Launch {
  std::string kernel;  ///< as nvcc mangles it
  ptx::Report report;
};

/// As nvcc mangles it.
/// @param function  what cudaLaunchKernel takes
/// @throws std::invalid_argument if no object of the program brought such a kernel
[[nodiscard]] std::string kernel_name(const void* function);

/// All since the last call, in order.
[[nodiscard]] std::vector<Launch> take_launches();

/// Wrong calls of the runtime since the last call of this, each as the call and what is wrong with it.
[[nodiscard]] std::vector<std::string> take_misuses();

/// What was made and is not destroyed: memory, streams, events, communicators of NCCL.
[[nodiscard]] std::vector<std::string> live_objects();

/// Bytes that NCCL was asked to send since the last call of this, by world rank of the receiver.
[[nodiscard]] std::map<int, std::int64_t> take_nccl_bytes();

}  // namespace hcp::software_gpu
