#include "tests/ptx/opcode_table.hpp"

namespace hcp::ptx {

namespace {

TypeClass class_of(const InstructionSyntax& instruction) {
  const auto type = instruction.modifiers.empty() ? std::nullopt : scalar_type(instruction.modifiers.back());
  if (!type) {
    return TypeClass::none;
  }
  switch (*type) {
    case ScalarType::pred:
      return TypeClass::predicate;
    case ScalarType::f16:
    case ScalarType::bf16:
    case ScalarType::f16x2:
    case ScalarType::bf16x2:
      return TypeClass::half;
    case ScalarType::f32:
    case ScalarType::f64:
      return TypeClass::single_or_double;
    default:
      return TypeClass::integer;
  }
}

}  // namespace

void OpcodeTable::add(std::string_view opcode, std::initializer_list<TypeClass> classes,
                      DecodeFunction decode) {
  for (const TypeClass type : classes) {
    functions_[{opcode, type}] = decode;
  }
}

void OpcodeTable::add(std::string_view opcode, DecodeFunction decode) {
  add(opcode,
      {TypeClass::none, TypeClass::predicate, TypeClass::integer, TypeClass::half,
       TypeClass::single_or_double},
      decode);
}

DecodeFunction OpcodeTable::find(const InstructionSyntax& instruction) const {
  const auto found = functions_.find({instruction.opcode, class_of(instruction)});
  return found == functions_.end() ? nullptr : found->second;
}

const OpcodeTable& opcode_table() {
  static const OpcodeTable table = [] {
    OpcodeTable all;
    add_integer_opcodes(all);
    add_bit_opcodes(all);
    add_float_opcodes(all);
    add_half_opcodes(all);
    add_compare_opcodes(all);
    add_convert_opcodes(all);
    add_move_opcodes(all);
    add_memory_opcodes(all);
    add_atomic_opcodes(all);
    add_async_copy_opcodes(all);
    add_matrix_opcodes(all);
    add_warp_opcodes(all);
    add_control_opcodes(all);
    return all;
  }();
  return table;
}

}  // namespace hcp::ptx
