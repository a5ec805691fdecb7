/// Faults for a kernel, one at a time: what is wrong in each is one instruction of its PTX, of a kind that
/// people get wrong. Tests that pass with such a kernel do not see that instruction.
///
/// Address arithmetic is not among them: nearly every fault there leaves the memory of a kernel, which the
/// interpreter sees at once, and would only flatter the share of those that are caught.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace hcp::mutation {

enum class MutationKind {
  barrier,     ///< a barrier of the block is missing
  copy,        ///< a cp.async is missing
  commit,      ///< a group of copies is not closed
  wait,        ///< copies are not waited for, or one group less
  product,     ///< an mma is missing, or its B has its halves exchanged
  fragment,    ///< an ldmatrix reads 16 bytes beside, or (not) transposed
  pack,        ///< two values are packed in the wrong order
  compare,     ///< < for <=, > for >=, == for !=, and back
  guard,       ///< what is done if a predicate holds is done if it does not
  select,      ///< the wrong one of two values
  logic,       ///< and for or, and back, of predicates and masks
  xor_bits,    ///< or for xor, as in swizzled addresses
  shuffle,     ///< a lane takes its own value
  arithmetic,  ///< an addend or factor is missing, - for +, min for max, no exponential
  store        ///< a store is missing
};
inline constexpr std::size_t mutation_kinds = 15;
[[nodiscard]] std::string_view name_of(MutationKind kind);

struct Mutant {
  MutationKind kind{};
  int line{};          ///< of the text, from 1
  std::string before;  ///< the instruction
  std::string after;   ///< what stands there instead; "" if it is missing
};

/// Of a text with one instruction a line, as nvcc writes it; by line.
[[nodiscard]] std::vector<Mutant> mutants_of(std::string_view kernel);

/// As many lines as before.
/// @throws std::invalid_argument if the mutant is not one of this text
[[nodiscard]] std::string mutated(std::string_view kernel, const Mutant& mutant);

}  // namespace hcp::mutation
