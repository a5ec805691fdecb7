#include "tests/mutation/ptx_mutants.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "tests/mutation/instruction_line.hpp"
#include "tests/mutation/text_lines.hpp"

namespace hcp::mutation {
namespace {

/// A change of an instruction; `opcode` is what a rule gives.
using Change = InstructionLine (*)(InstructionLine line, std::string_view opcode);

struct Rule {
  MutationKind kind;
  std::string_view prefix;  ///< of the opcodes that the rule is for
  Change change;
  std::string_view opcode = "";
};

InstructionLine missing(InstructionLine, std::string_view) {
  return {};
}

/// Instead of the prefix of the rule, which has as many parts between points.
InstructionLine renamed(InstructionLine line, std::string_view opcode) {
  std::size_t end = 0;
  for (auto points = std::ranges::count(opcode, '.'); points >= 0 && end != std::string::npos; --points) {
    end = line.opcode.find('.', end + 1);
  }
  line.opcode.replace(0, end, opcode);
  return line;
}

template <std::size_t operands>
InstructionLine shortened(InstructionLine line, std::string_view opcode) {
  line.opcode = opcode;
  line.operands.resize(operands);
  return line;
}

InstructionLine values_exchanged(InstructionLine line, std::string_view) {
  std::swap(line.operands.at(1), line.operands.at(2));
  return line;
}

InstructionLine own_value(InstructionLine line, std::string_view opcode) {
  std::string& target = line.operands.at(0);  // may be "value|whether the other lane is there"
  target.erase(std::min(target.find('|'), target.size()));
  return shortened<2>(std::move(line), opcode);
}

InstructionLine one_group_less(InstructionLine line, std::string_view) {
  std::string& groups = line.operands.at(0);
  groups = std::to_string(std::stoi(groups) + 1);
  return line;
}

InstructionLine halves_of_b_exchanged(InstructionLine line, std::string_view) {
  std::string& b = line.operands.at(2);
  const std::size_t comma = b.find(", ");
  b = "{" + b.substr(comma + 2, b.size() - comma - 3) + ", " + b.substr(1, comma - 1) + "}";
  return line;
}

InstructionLine sixteen_bytes_beside(InstructionLine line, std::string_view) {
  std::string& address = line.operands.at(1);
  address.insert(address.size() - 1, "+16");
  return line;
}

InstructionLine transposed(InstructionLine line, std::string_view) {
  constexpr std::string_view mark = ".trans";
  const std::size_t place = line.opcode.find(mark);
  if (place != std::string::npos) {
    line.opcode.erase(place, mark.size());
  } else {
    line.opcode.insert(line.opcode.find(".shared"), mark);
  }
  return line;
}

InstructionLine guard_negated(InstructionLine line, std::string_view) {
  line.guard = line.guard[1] == '!' ? "@" + line.guard.substr(2) : "@!" + line.guard.substr(1);
  return line;
}

/// Without its addend, such an fma is what it was.
bool adds_zero(const InstructionLine& line) {
  return line.opcode.starts_with("fma.") && line.operands.back() == "0f00000000";
}

using enum MutationKind;
constexpr Rule rules[]{
    {barrier, "bar.sync", missing},
    {barrier, "barrier.sync", missing},
    {copy, "cp.async.ca", missing},
    {copy, "cp.async.cg", missing},
    {commit, "cp.async.commit_group", missing},
    {wait, "cp.async.wait_group", missing},
    {wait, "cp.async.wait_group", one_group_less},
    {product, "mma.sync", missing},
    {product, "mma.sync", halves_of_b_exchanged},
    {fragment, "ldmatrix", sixteen_bytes_beside},
    {fragment, "ldmatrix", transposed},
    {pack, "cvt.rn.bf16x2.f32", values_exchanged},
    {pack, "cvt.rn.f16x2.f32", values_exchanged},
    {compare, "setp.lt.", renamed, "setp.le"},
    {compare, "setp.le.", renamed, "setp.lt"},
    {compare, "setp.gt.", renamed, "setp.ge"},
    {compare, "setp.ge.", renamed, "setp.gt"},
    {compare, "setp.eq.", renamed, "setp.ne"},
    {compare, "setp.ne.", renamed, "setp.eq"},
    {select, "selp.", values_exchanged},
    {logic, "and.pred", renamed, "or.pred"},
    {logic, "or.pred", renamed, "and.pred"},
    {logic, "and.b64", renamed, "or.b64"},
    {logic, "or.b64", renamed, "and.b64"},
    {logic, "or.b32", renamed, "and.b32"},
    {xor_bits, "xor.b32", renamed, "or.b32"},
    {shuffle, "shfl.sync", own_value, "mov.b32"},
    {arithmetic, "fma.rn.f32", shortened<3>, "mul.f32"},
    {arithmetic, "mul.f32", shortened<2>, "mov.f32"},
    {arithmetic, "add.f32", renamed, "sub.f32"},
    {arithmetic, "sub.f32", renamed, "add.f32"},
    {arithmetic, "max.f32", renamed, "min.f32"},
    {arithmetic, "ex2.approx", shortened<2>, "mov.f32"},
    {arithmetic, "lg2.approx", shortened<2>, "mov.f32"},
    {store, "st.global", missing},
    {store, "st.shared", missing},
};

}  // namespace

std::string_view name_of(MutationKind kind) {
  constexpr std::array<std::string_view, mutation_kinds> names{
      "barrier", "copy",   "commit", "wait", "product", "fragment",   "pack", "compare",
      "guard",   "select", "logic",  "xor",  "shuffle", "arithmetic", "store"};
  return names.at(static_cast<std::size_t>(kind));
}

std::vector<Mutant> mutants_of(std::string_view kernel) {
  std::vector<Mutant> mutants;
  int number = 0;
  for (const std::string_view text : lines_of(kernel)) {
    ++number;
    const auto instruction = instruction_of(text);
    if (!instruction) {
      continue;
    }
    const std::string before = text_of(*instruction);
    for (const Rule& rule : rules) {
      if (instruction->opcode.starts_with(rule.prefix) &&
          !(rule.kind == arithmetic && adds_zero(*instruction))) {
        const InstructionLine after = rule.change(*instruction, rule.opcode);
        mutants.push_back({rule.kind, number, before, after.opcode.empty() ? "" : text_of(after)});
      }
    }
    if (!instruction->guard.empty()) {
      mutants.push_back({guard, number, before, text_of(guard_negated(*instruction, ""))});
    }
  }
  return mutants;
}

std::string mutated(std::string_view kernel, const Mutant& mutant) {
  std::string text;
  int number = 0;
  for (const std::string_view line : lines_of(kernel)) {
    if (++number == mutant.line) {
      const auto instruction = instruction_of(line);
      if (!instruction || text_of(*instruction) != mutant.before) {
        throw std::invalid_argument{"line " + std::to_string(number) + " is not '" + mutant.before +
                                    "' but '" + std::string{line} + "'"};
      }
      text += mutant.after;
    } else {
      text += line;
    }
    text += '\n';
  }
  return text;
}

}  // namespace hcp::mutation
