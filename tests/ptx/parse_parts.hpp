/// The parts of PTX that parse_ptx() is made of.
#pragma once

#include "tests/ptx/syntax.hpp"
#include "tests/ptx/token_reader.hpp"

namespace hcp::ptx {

/// .space {.align n} .type name{<n>}{[n]...}{= values}, without the semicolon
[[nodiscard]] VariableSyntax parse_declaration(TokenReader& tokens);

/// {<n>}{[n]...} behind a name
void parse_extent(TokenReader& tokens, VariableSyntax& result);

/// {@{!}guard} opcode{.modifier...} operands; without its place in the source
[[nodiscard]] InstructionSyntax parse_instruction(TokenReader& tokens);

}  // namespace hcp::ptx
