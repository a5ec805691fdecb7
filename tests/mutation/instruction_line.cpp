#include "tests/mutation/instruction_line.hpp"

#include <cctype>

namespace hcp::mutation {
namespace {

constexpr std::string_view blanks = " \t";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(blanks);
  return begin == std::string_view::npos ? std::string_view{}
                                         : text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

/// The first word, which is taken from `rest`.
std::string take_word(std::string_view& rest) {
  const std::string word{rest.substr(0, rest.find_first_of(blanks))};
  rest = trimmed(rest.substr(word.size()));
  return word;
}

std::vector<std::string> operands_of(std::string_view text) {
  std::vector<std::string> operands;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= text.size() && !text.empty(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
    if (c == ',' && depth == 0) {
      operands.emplace_back(trimmed(text.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  return operands;
}

}  // namespace

std::optional<InstructionLine> instruction_of(std::string_view line) {
  std::string_view rest = trimmed(line);
  if (rest.empty() || rest.back() != ';') {
    return std::nullopt;
  }
  rest = trimmed(rest.substr(0, rest.size() - 1));
  InstructionLine instruction;
  if (rest.starts_with('@')) {
    instruction.guard = take_word(rest);
  }
  if (rest.empty() || std::islower(static_cast<unsigned char>(rest.front())) == 0) {
    return std::nullopt;  // a directive
  }
  instruction.opcode = take_word(rest);
  instruction.operands = operands_of(rest);
  return instruction;
}

std::string text_of(const InstructionLine& instruction) {
  std::string text = instruction.guard;
  text += text.empty() ? "" : " ";
  text += instruction.opcode;
  for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
    text += (i == 0 ? " " : ", ") + instruction.operands[i];
  }
  return text + ";";
}

}  // namespace hcp::mutation
