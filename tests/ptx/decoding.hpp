/// Decoding of one instruction: its modifiers are taken one after the other, its operands by number.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "tests/ptx/instruction.hpp"
#include "tests/ptx/kernel_builder.hpp"
#include "tests/ptx/scalar_type.hpp"
#include "tests/ptx/syntax.hpp"

namespace hcp::ptx {

/// What a name means where an instruction stands.
struct Symbol {
  enum class Kind { register_, shared, dynamic_shared, global, constant, local, kernel_param, call_param };
  Kind kind = Kind::register_;
  Operand place;            ///< of a register
  int bytes = 0;            ///< of a register, per lane; 0 for a predicate
  std::uint64_t value = 0;  ///< of a variable: its address or offset in its state space; else its alignment
};

/// Finds names in the scopes around an instruction.
class SymbolTable {
 public:
  virtual ~SymbolTable() = default;
  /// nullptr if the name is not declared.
  [[nodiscard]] virtual const Symbol* find(const std::string& name) const = 0;
};

/// Every function refuses (std::invalid_argument with the line) what does not fit the instruction.
class Decoding {
 public:
  Decoding(const InstructionSyntax& syntax, const SymbolTable& symbols, KernelBuilder& kernel);

  // Modifiers, in the order in which they stand.
  /// Takes the next modifier if it is `modifier`.
  bool take(std::string_view modifier);
  /// Takes the next modifier if it is one of `choices`, else returns "".
  std::string take_one_of(std::initializer_list<std::string_view> choices);
  /// Takes the next modifier, which must be a type.
  [[nodiscard]] ScalarType type();
  /// Takes the next modifier, which must be one of `allowed`.
  [[nodiscard]] ScalarType type_of(std::initializer_list<ScalarType> allowed);
  void require(std::string_view modifier);

  // Operands.
  [[nodiscard]] std::size_t operand_count() const { return syntax_.operands.size(); }
  void expect_operands(std::size_t count) const;
  [[nodiscard]] const OperandSyntax& operand(std::size_t index) const;
  /// A register as wide as `type`.
  [[nodiscard]] Operand destination(std::size_t index, ScalarType type);
  [[nodiscard]] Operand destination(const OperandSyntax& operand, ScalarType type);
  /// A register as wide as `type`, an immediate or the address of a variable.
  [[nodiscard]] Operand source(std::size_t index, ScalarType type);
  [[nodiscard]] Operand source(const OperandSyntax& operand, ScalarType type);
  /// A register at least as wide as `type` (ld, st, cvt); `bytes` becomes its width. Immediates are as wide
  /// as `type`.
  [[nodiscard]] Operand wide_register(const OperandSyntax& operand, ScalarType type, int& bytes);
  [[nodiscard]] Operand wide_source(const OperandSyntax& operand, ScalarType type, int& bytes);
  [[nodiscard]] Operand predicate(std::size_t index);
  [[nodiscard]] Operand predicate(const std::string& word);
  /// A list of `count` operands, or one without braces if `count` is 1.
  [[nodiscard]] const std::vector<OperandSyntax>& list(std::size_t index, std::size_t count) const;
  [[nodiscard]] std::uint64_t immediate(std::size_t index) const;
  [[nodiscard]] Address address(std::size_t index);
  /// What the base of an address names, nullptr for a register or a number.
  [[nodiscard]] const Symbol* variable(const OperandSyntax& operand) const;
  [[nodiscard]] const Symbol* symbol(const std::string& word) const { return symbols_.find(word); }

  /// Nothing may be left over.
  void expect_end() const;

  [[noreturn]] void refuse(const std::string& what) const;

  [[nodiscard]] KernelBuilder& kernel() { return kernel_; }
  [[nodiscard]] const InstructionSyntax& syntax() const { return syntax_; }

  Instruction result;

 private:
  [[nodiscard]] Operand symbol_value(const Symbol& symbol, int bytes);
  [[nodiscard]] std::uint64_t number(const std::string& word, ScalarType type) const;

  const InstructionSyntax& syntax_;
  const SymbolTable& symbols_;
  KernelBuilder& kernel_;
  std::size_t next_modifier_ = 0;
};

}  // namespace hcp::ptx
