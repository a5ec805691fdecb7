/// What a kernel of attention does, in numbers that speed depends on and that can be had without a device.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hcp::test {

/// One block on a multiprocessor.
struct BlockFacts {
  std::string tile;  ///< rows that it owns x rows that it visits at a time
  int threads = 0;
  int shared_bytes = 0;
  std::optional<int> registers = {};  ///< of a thread
};

/// Sums over a launch.
struct KernelWork {
  double useful_flops = 0.0;    ///< 2 per multiply and add of this kernel's products, of visible pairs
  double executed_flops = 0.0;  ///< of whole tiles, by mma
  double mma = 0.0;             ///< warp instructions m16n8k16
  double matrix_loads = 0.0;    ///< warp instructions ldmatrix.x4, 512 bytes each
  double exponentials = 0.0;    ///< of single pairs
  double shared_bytes = 0.0;    ///< loaded and stored
  double shared_phases = 0.0;   ///< passes over the banks, at most 128 bytes each
  double bank_conflicts = 0.0;  ///< of these passes, those that other addresses would not need
  double global_bytes = 0.0;    ///< asked for and stored, wherever they come from
  std::optional<double> warp_instructions = {};  ///< all of them, as the PTX has them
};

struct KernelProxy {
  std::string kernel;
  std::string work;  ///< what it was launched for
  BlockFacts block;
  KernelWork sums;
};

inline constexpr double flops_per_mma = 2.0 * 16 * 8 * 16;

}  // namespace hcp::test
