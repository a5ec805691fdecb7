/// One warp: its registers, where its lanes stand in the code, and its accesses to memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "tests/ptx/access_clock.hpp"
#include "tests/ptx/async_copies.hpp"
#include "tests/ptx/global_memory.hpp"
#include "tests/ptx/instruction.hpp"
#include "tests/ptx/launch_state.hpp"
#include "tests/ptx/report.hpp"

namespace hcp::ptx {

class Block;

using LaneAddresses = std::array<std::uint64_t, warp_lanes>;

/// The lanes that read or write `bytes` each, and how.
struct WarpAccess {
  const Instruction& instruction;
  LaneMask mask = 0;
  const LaneAddresses& addresses;
  std::uint32_t bytes = 0;
  AccessKind kind = AccessKind::read;
  std::uint32_t alignment = bytes;  ///< of global addresses
};

class Warp {
 public:
  Warp(Block& block, int id);
  Warp(const Warp&) = delete;
  Warp& operator=(const Warp&) = delete;

  /// For the next block.
  void reset();

  enum class Stop { at_barrier, ended };
  /// Runs until the warp must wait for others or has ended.
  Stop run();

  // Operands.
  template <typename T>
  [[nodiscard]] T* destination(Operand operand) {
    return reinterpret_cast<T*>(registers_ + operand.byte_offset());
  }
  template <typename T>
  [[nodiscard]] const T* source(Operand operand) const {
    return reinterpret_cast<const T*>((operand.is_constant() ? constants_ : registers_) +
                                      operand.byte_offset());
  }
  [[nodiscard]] LaneMask predicate(Operand operand) const {
    const LaneMask value = *source<LaneMask>(operand);
    return operand.is_negated() ? ~value : value;
  }
  void set_predicate(Operand operand, LaneMask value, LaneMask mask) {
    auto* place = destination<LaneMask>(operand);
    *place = (*place & ~mask) | (value & mask);
  }
  [[nodiscard]] LaneAddresses addresses(const Address& address) const;

  // Memory: each checks and counts the access and returns the lanes that may make it.
  LaneMask access_shared(const WarpAccess& access);     ///< addresses in the shared window
  LaneMask issue_async_copy(const WarpAccess& access);  ///< to shared memory
  LaneMask access_global(const WarpAccess& access);
  LaneMask access_local(const WarpAccess& access);       ///< addresses in the frame of the thread
  LaneMask access_parameters(const WarpAccess& access);  ///< addresses in the parameter space of the kernel
  [[nodiscard]] std::byte* shared_data(std::uint64_t address);
  [[nodiscard]] std::byte* local_data(std::uint64_t address, int lane);
  [[nodiscard]] const std::byte* parameter_data(std::uint64_t address) const;
  /// To be held over an atomic access to device memory.
  [[nodiscard]] std::unique_lock<std::mutex> lock_global_memory();

  void report(const Instruction& instruction, FindingKind kind, int lane, std::uint64_t address,
              const std::string& message);

  [[nodiscard]] int id() const { return id_; }
  [[nodiscard]] LaneMask live() const { return live_; }
  [[nodiscard]] WarpClock& clock() { return clock_; }
  [[nodiscard]] AsyncCopies& async_copies() { return async_copies_; }
  [[nodiscard]] Block& block() { return block_; }
  void wait_at_barrier(bool waits) { at_barrier_ = waits; }
  [[nodiscard]] bool is_at_barrier() const { return at_barrier_; }
  /// The instruction after which the warp stopped.
  [[nodiscard]] const Instruction& instruction_before() const;
  /// The lanes `mask` have synchronised with each other.
  void synchronise_lanes(LaneMask mask);

 private:
  /// Lanes that stand at one place in the code while others stand elsewhere.
  struct LaneGroup {
    std::int32_t pc = 0;
    LaneMask mask = 0;
    bool waits = false;  // at an instruction that needs more lanes
  };

  /// What an access means for the order of accesses to shared memory.
  enum class SharedNote { read, write, async_issue };
  LaneMask note_shared(const WarpAccess& access, SharedNote note);
  LaneMask inside(const WarpAccess& access, std::uint64_t begin, std::uint64_t bytes, const char* memory);
  void set_special_registers();
  [[nodiscard]] std::uint32_t special_value(SpecialRegister which, int lane) const;

  // Lanes in the code.
  [[nodiscard]] bool must_regroup() const;
  bool regroup();
  void leave(std::int32_t pc, LaneMask mask, bool waits);
  bool step(const Instruction& instruction);
  void branch(const Instruction& instruction, LaneMask taken);
  void exit(const Instruction& instruction, LaneMask ends);
  bool synchronise(const Instruction& instruction, LaneMask arrived);
  [[nodiscard]] LaneMask complete_members(const Instruction& instruction, LaneMask arrived);
  void report_divergence();

  Block& block_;
  const LaunchState& launch_;
  int id_ = 0;
  std::vector<std::uint64_t> register_storage_;
  std::byte* registers_ = nullptr;
  const std::byte* constants_ = nullptr;
  std::vector<std::byte> local_;
  LaneMask live_ = 0;
  LaneGroup current_;
  std::vector<LaneGroup> others_;
  bool at_barrier_ = false;
  WarpClock clock_;
  AsyncCopies async_copies_;
};

}  // namespace hcp::ptx
