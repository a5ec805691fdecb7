/// One decoded instruction, ready to be executed for the 32 lanes of a warp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace hcp::ptx {

/// Bit l stands for lane l of a warp.
using LaneMask = std::uint32_t;

constexpr int warp_lanes = 32;
constexpr LaneMask all_lanes = ~LaneMask{0};

/// Where the values of an operand lie: 32 values next to each other, one per lane, in the registers of a warp
/// or in the constants of the kernel. A predicate is one LaneMask.
class Operand {
 public:
  Operand() = default;
  static Operand in_registers(std::uint32_t byte_offset) { return Operand{byte_offset}; }
  static Operand in_constants(std::uint32_t byte_offset) { return Operand{byte_offset | constant_bit}; }

  [[nodiscard]] bool exists() const { return bits_ != none; }
  [[nodiscard]] bool is_constant() const { return (bits_ & constant_bit) != 0; }
  [[nodiscard]] bool is_negated() const { return (bits_ & negated_bit) != 0; }  ///< a predicate "!%p"
  [[nodiscard]] std::uint32_t byte_offset() const { return bits_ & ~(constant_bit | negated_bit); }
  [[nodiscard]] Operand negated() const { return Operand{bits_ ^ negated_bit}; }

 private:
  static constexpr std::uint32_t constant_bit = 1U << 31;
  static constexpr std::uint32_t negated_bit = 1U << 30;
  static constexpr std::uint32_t none = ~0U;
  explicit Operand(std::uint32_t bits) : bits_{bits} {}
  std::uint32_t bits_ = none;
};

/// An address operand [base + displacement]. The base has 4 or 8 bytes per lane.
struct Address {
  Operand base;
  std::int64_t displacement = 0;
  bool base_is_32_bit = false;
};

/// How execution goes on after an instruction.
enum class Flow : std::uint8_t {
  step,       ///< to the next one
  branch,     ///< to Instruction::target
  exit,       ///< the lanes end
  warp_sync,  ///< executed once all lanes of member_mask that have not ended stand here
  block_sync  ///< a warp_sync of all lanes, after which the warp may have to wait for others of its block
};

/// What the counters tell apart.
enum class InstructionKind : std::uint8_t {
  other,
  mma,
  ldmatrix,
  stmatrix,
  shared_load,
  shared_store,
  global_load,
  global_store,
  async_copy,
  barrier
};
constexpr std::size_t instruction_kinds = 10;

class Warp;
struct Instruction;

/// Executes for the lanes of `mask`, which is never 0.
using Handler = void (*)(Warp& warp, const Instruction& instruction, LaneMask mask);

struct Instruction {
  Handler execute = nullptr;
  Operand guard;             ///< a predicate; constant and true where the text has none
  LaneMask guard_flip = 0;   ///< all_lanes for "@!%p"
  std::int32_t target = -1;  ///< of a branch: index into the code
  Flow flow = Flow::step;
  InstructionKind kind = InstructionKind::other;
  std::uint8_t element_bytes = 0;
  std::uint8_t elements = 1;    ///< of a vector access
  std::uint32_t immediate = 0;  ///< an option of the opcode, e.g. the table of lop3
  std::array<Operand, 14> operands{};
  Operand member_mask;  ///< of a warp_sync
  std::array<Address, 2> addresses{};
  int line = 0;  ///< in the PTX text
};

}  // namespace hcp::ptx
