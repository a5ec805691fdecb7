/// A line of PTX with one instruction, in parts that can be exchanged.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hcp::mutation {

struct InstructionLine {
  std::string guard;                  ///< "@%p1", "@!%p1" or ""
  std::string opcode;                 ///< with everything behind its points
  std::vector<std::string> operands;  ///< lists "{a, b}" and addresses "[a+4]" are one
};

/// Nothing for a line without an instruction.
[[nodiscard]] std::optional<InstructionLine> instruction_of(std::string_view line);

[[nodiscard]] std::string text_of(const InstructionLine& instruction);

}  // namespace hcp::mutation
