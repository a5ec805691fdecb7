/// PTX text taken apart: what stands there, before anything is given a meaning.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tests/ptx/scalar_type.hpp"

namespace hcp::ptx {

/// Where an instruction comes from in the source that was compiled (.loc); file is empty where unknown.
struct SourcePlace {
  std::string file;
  int line = 0;
};

/// One operand: a word (register, immediate, symbol), an address [word + displacement] or a {list} of
/// operands.
struct OperandSyntax {
  enum class Kind { word, address, list };
  Kind kind = Kind::word;
  std::string word;               ///< "%r7", "-12", "0f3F800000", "table"; of an address its base, "" if none
  std::string second;             ///< "%p3" in "%r1|%p3"
  bool negated = false;           ///< "!%p1"
  std::int64_t displacement = 0;  ///< bytes added to the base of an address
  std::vector<OperandSyntax> elements;
};

struct InstructionSyntax {
  int line = 0;
  std::string text;
  std::string opcode;                  ///< "ld"
  std::vector<std::string> modifiers;  ///< "global", "v4", "f32"
  std::string guard;                   ///< "%p1", "" if unconditional
  bool guard_negated = false;
  std::vector<OperandSyntax> operands;
  SourcePlace place;
};

enum class StateSpace { reg, global, constant, shared, local, param };

/// A variable or, in space reg, `count` registers of that name; element 0 of a declaration "%r<5>" is "%r0".
struct VariableSyntax {
  int line = 0;
  StateSpace space = StateSpace::reg;
  ScalarType type = ScalarType::b32;
  std::string name;
  std::int64_t alignment = 0;  ///< bytes; 0 if the text gives none: then that of the type
  std::int64_t elements = 1;   ///< 0 for an array without a size: dynamic shared memory
  bool is_range = false;       ///< declared as name<elements>
  std::vector<std::uint8_t> initial_bytes;
};

struct LabelSyntax {
  int line = 0;
  std::string name;
};

/// The braces inside of a function, between which names may be declared again.
struct ScopeSyntax {
  bool opens = false;
};

using StatementSyntax = std::variant<InstructionSyntax, VariableSyntax, LabelSyntax, ScopeSyntax>;

struct FunctionSyntax {
  int line = 0;
  bool is_entry = false;
  std::string name;
  std::vector<VariableSyntax> results;  ///< of a .func
  std::vector<VariableSyntax> parameters;
  std::int64_t max_threads = 0;  ///< of .maxntid or .reqntid, all dimensions multiplied; 0 if none
  std::vector<StatementSyntax> body;
};

struct ModuleSyntax {
  std::vector<VariableSyntax> variables;
  std::vector<FunctionSyntax> functions;
};

/// @throws std::invalid_argument with the line for every directive or construct that is not known
[[nodiscard]] ModuleSyntax parse_ptx(std::string_view text);

/// Throws std::invalid_argument "PTX line <line>: <what>".
[[noreturn]] void refuse(int line, const std::string& what);

}  // namespace hcp::ptx
