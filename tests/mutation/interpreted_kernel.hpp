/// One kernel in PTX behind the interface of all attention kernels, run by the interpreter.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "kernels/attention_kernel.hpp"
#include "kernels/cuda/kernel_entry.hpp"
#include "kernels/cuda/kernel_parameters.hpp"
#include "tests/kernels/cuda/device_problem.hpp"
#include "tests/mutation/device_copies.hpp"
#include "tests/ptx/interpreter.hpp"

namespace hcp::mutation {

/// The interpreter found something; what() is the finding.
class Found : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Operations that need other kernels do nothing: of backward_block there may be dq alone. Launches as the
/// product makes them, with the grids of kernels on rows cut to two blocks so that each goes round several
/// times. All operations throw Found.
class InterpretedKernel final : public AttentionKernel {
 public:
  /// @param text   a module that holds the kernel alone
  /// @param entry  its KernelEntry::name
  /// @throws std::invalid_argument as ptx::Module::load
  InterpretedKernel(const std::string& text, std::string entry);

  /// Of a block; more are a finding.
  void allow_warp_instructions(std::uint64_t most) { max_warp_instructions_ = most; }

  /// Of all launches since the last call.
  [[nodiscard]] ptx::Counters take_counters() { return std::exchange(counters_, {}); }

  [[nodiscard]] MemorySpace memory_space() const override { return MemorySpace::host; }
  void forward_block(const BlockRule& rule, const QueryBlock& query, const KvBlock& kv,
                     const RunningOutput& running) override;
  void max_logits(const float* max, std::int64_t rows, std::int64_t heads, float* logits) override;
  void finish_forward(const RunningOutput& running, std::int64_t rows, std::int64_t heads, std::int64_t dim_v,
                      float* lse, const float* sinks) override;
  void backward_block(const BlockRule& rule, const GradientBlock& gradient, const KvBlock& kv,
                      const KvGradient& kv_gradient) override;
  void sink_gradients(const float* sinks, const float* lse, const float* delta, std::int64_t rows,
                      std::int64_t heads, float* dsinks) override;
  void row_dot(ConstTensorView out, ConstTensorView dout, float* delta) override;
  void copy_rows(const BasicRowTable<const std::byte>& source, const BasicRowTable<std::byte>& target,
                 std::int64_t rows, std::int64_t elements) override;
  void add_rows(const BasicRowTable<const std::byte>& source, const BasicRowTable<std::byte>& target,
                std::int64_t rows, std::int64_t elements) override;
  void fill(float* target, std::int64_t count, float value) override;

 private:
  template <typename Parameters>
  void launch(const cuda::KernelEntry& entry, std::size_t blocks_x, std::int64_t blocks_y,
              const Parameters& parameters, DeviceCopies& copies);
  template <typename Parameters>
  void launch_rows(const cuda::KernelEntry& entry, const Parameters& parameters, DeviceCopies& copies) {
    launch(entry, 2, 1, parameters, copies);
  }

  ptx::Module module_;
  const ptx::Kernel& kernel_;
  std::string entry_;
  std::uint64_t max_warp_instructions_ = ptx::RunOptions{}.max_warp_instructions;
  ptx::Counters counters_;
};

}  // namespace hcp::mutation
