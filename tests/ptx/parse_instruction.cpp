#include <algorithm>
#include <cstddef>
#include <string>

#include "tests/ptx/parse_parts.hpp"

namespace hcp::ptx {

namespace {

void split_opcode(const std::string& word, InstructionSyntax& result) {
  std::size_t dot = word.find('.');
  result.opcode = word.substr(0, dot);
  while (dot != std::string::npos) {
    const std::size_t end = word.find('.', dot + 1);
    result.modifiers.push_back(word.substr(dot + 1, end == std::string::npos ? end : end - dot - 1));
    dot = end;
  }
}

void parse_address(TokenReader& tokens, OperandSyntax& result) {
  const bool begins_with_digit =
      tokens.peek().is("-") || (tokens.peek().text[0] >= '0' && tokens.peek().text[0] <= '9');
  if (begins_with_digit) {
    result.displacement = tokens.integer();
  } else {
    result.word = tokens.next().text;
    if (tokens.take("+")) {
      result.displacement = tokens.integer();
    } else if (tokens.peek().is("-")) {
      result.displacement = tokens.integer();
    }
  }
  tokens.expect("]");
}

OperandSyntax parse_operand(TokenReader& tokens) {
  OperandSyntax result;
  if (tokens.take("[")) {
    result.kind = OperandSyntax::Kind::address;
    parse_address(tokens, result);
  } else if (tokens.peek().is("{") || tokens.peek().is("(")) {
    const bool brace = tokens.next().is("{");
    result.kind = OperandSyntax::Kind::list;
    while (!tokens.take(brace ? "}" : ")")) {
      result.elements.push_back(parse_operand(tokens));
      tokens.take(",");
    }
  } else {
    result.negated = tokens.take("!");
    result.word = tokens.take("-") ? "-" : "";
    result.word += tokens.next().text;
    if (tokens.take("|")) {
      result.second = tokens.next().text;
    }
  }
  return result;
}

}  // namespace

InstructionSyntax parse_instruction(TokenReader& tokens) {
  InstructionSyntax result;
  result.line = tokens.peek().line;
  const std::size_t begin = tokens.peek().offset;
  if (tokens.take("@")) {
    result.guard_negated = tokens.take("!");
    result.guard = tokens.next().text;
  }
  split_opcode(tokens.next().text, result);
  while (!tokens.peek().is(";")) {
    result.operands.push_back(parse_operand(tokens));
    tokens.take(",");
  }
  result.text = tokens.text().substr(begin, tokens.peek().offset - begin);
  std::ranges::replace(result.text, '\t', ' ');
  std::ranges::replace(result.text, '\n', ' ');
  tokens.expect(";");
  return result;
}

}  // namespace hcp::ptx
