/// Which function decodes which instruction.
#pragma once

#include <initializer_list>
#include <map>
#include <string_view>
#include <utility>

#include "tests/ptx/decoding.hpp"

namespace hcp::ptx {

/// Takes modifiers and operands and sets Decoding::result.
using DecodeFunction = void (*)(Decoding& decoding);

/// One opcode means different things for different types; the last modifier of an instruction decides.
enum class TypeClass { none, predicate, integer, half, single_or_double };

class OpcodeTable {
 public:
  void add(std::string_view opcode, std::initializer_list<TypeClass> classes, DecodeFunction decode);
  /// Whatever the type is.
  void add(std::string_view opcode, DecodeFunction decode);
  /// nullptr if the instruction is not known.
  [[nodiscard]] DecodeFunction find(const InstructionSyntax& instruction) const;

 private:
  std::map<std::pair<std::string_view, TypeClass>, DecodeFunction> functions_;
};

/// All instructions that the interpreter knows.
[[nodiscard]] const OpcodeTable& opcode_table();

// One room per family.
void add_integer_opcodes(OpcodeTable& table);
void add_bit_opcodes(OpcodeTable& table);
void add_float_opcodes(OpcodeTable& table);
void add_half_opcodes(OpcodeTable& table);
void add_compare_opcodes(OpcodeTable& table);
void add_convert_opcodes(OpcodeTable& table);
void add_move_opcodes(OpcodeTable& table);
void add_memory_opcodes(OpcodeTable& table);
void add_atomic_opcodes(OpcodeTable& table);
void add_async_copy_opcodes(OpcodeTable& table);
void add_matrix_opcodes(OpcodeTable& table);
void add_warp_opcodes(OpcodeTable& table);
void add_control_opcodes(OpcodeTable& table);

}  // namespace hcp::ptx
