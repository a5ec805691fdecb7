/// A GPU in software, to run the product's host code for devices where there is none: a double of that part
/// of the CUDA runtime that the product calls, linked in its stead. Kernels run from their PTX through the
/// interpreter (tests/ptx) with all of its checks, and the calls themselves are checked, too. Only programs
/// that are linked with the double have this header's functions.
///
/// Device memory is NaN until it is written; a host that touches it ends with a segmentation fault. Addresses
/// are never given out twice, so what was freed stays out of bounds. Kernels may not touch pinned memory,
/// though devices could. A process sees one device, or several (HCP_SOFTWARE_GPU_DEVICES); nothing of one may
/// be used while another is current, except to wait for it.
///
/// Without a schedule every operation is done at once, in the order of the calls. With one (set_schedule)
/// streams are queues: operations run when something waits for them or asks for them, in an order drawn from
/// the seed among all that streams and events allow. Vector clocks tell which operations are ordered, and two
/// accesses to a byte of device or pinned memory that nothing orders, one of them a write, are a finding,
/// whatever the order that was drawn; the exact footprint of a kernel comes from its run. The host sees what
/// is copied to it only once it has waited, and may not change before that what copies come from or go to;
/// its own accesses are known where it hands pinned memory to MPI. Copies from and to memory that is not
/// pinned count as asynchronous too, although CUDA waits for some of them. cudaFree waits for the device, as
/// on hardware; cudaFreeHost may not be relied on to. Planted bugs (planted_bugs.hpp) show that mistakes are
/// found.
///
/// Measured on a Zen 4: the tests of the attention kernels take 43.0 s of processor time with a schedule and
/// 40.4 s without.
///
/// What this is not: operations run one at a time, never at the same time, and a kernel as a whole; threads
/// of the host count as one; a kernel with findings is no error of the runtime; priorities of streams change
/// nothing. The host's own reads and writes of pinned memory are not seen, only their traces in values.
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
