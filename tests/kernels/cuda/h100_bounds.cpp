#include "tests/kernels/cuda/h100_bounds.hpp"

#include <algorithm>
#include <stdexcept>

namespace hcp::test {
namespace {

/// @source NVIDIA H100 data sheet, SXM: 132 multiprocessors, 989 TFLOP/s bf16 without sparsity, which are
/// 4096 per clock and multiprocessor at 1.83 GHz
constexpr double multiprocessors = 132;
constexpr double clock_hz = 1.83e9;
constexpr double tensor_flops_per_clock = 4096;
/// What mma.sync gets of that, which wgmma can reach:
/// an assumption; on Hopper, mma.sync is reported to stay well below wgmma.
/// @source Luo et al. 2024, arXiv:2402.13499
constexpr double mma_sync_share = 0.62;
/// @source CUDA C++ programming guide, compute capability 9.0: 32 banks of 4 bytes, four schedulers, 16
/// results of special functions per clock
constexpr double phases_per_clock = 1;
constexpr double instructions_per_clock = 4;
constexpr double exponentials_per_clock = 16;

constexpr int shared_bytes_of_multiprocessor = 228 << 10;
constexpr int reserved_shared_bytes_of_block = 1 << 10;
constexpr int registers_of_multiprocessor = 64 << 10;
constexpr int register_granule = 8;  // registers of a thread are given out in eights

double seconds(double units, double units_per_clock) {
  return units / (units_per_clock * clock_hz * multiprocessors);
}

}  // namespace

UnitTimes unit_times(const KernelWork& work) {
  return {.tensor = seconds(work.executed_flops, tensor_flops_per_clock * mma_sync_share),
          .shared = seconds(work.shared_phases, phases_per_clock),
          .issue = seconds(work.warp_instructions.value_or(0.0), instructions_per_clock),
          .exponentials = seconds(work.exponentials, exponentials_per_clock)};
}

double UnitTimes::bound() const {
  return std::max({tensor, shared, issue, exponentials});
}

std::string UnitTimes::nearest() const {
  const double time = bound();
  return time == tensor ? "tensor" : time == shared ? "shared" : time == issue ? "issue" : "exp2";
}

int blocks_by_shared_memory(const BlockFacts& block) {
  return shared_bytes_of_multiprocessor / (block.shared_bytes + reserved_shared_bytes_of_block);
}

int blocks_by_registers(const BlockFacts& block) {
  if (!block.registers) {
    throw std::invalid_argument{"the registers of a thread are not known"};
  }
  const int of_thread = (*block.registers + register_granule - 1) / register_granule * register_granule;
  return registers_of_multiprocessor / (of_thread * block.threads);
}

}  // namespace hcp::test
