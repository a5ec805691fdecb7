#include "tests/mutation/equivalent_mutants.hpp"

#include <algorithm>
#include <regex>
#include <string>

namespace hcp::mutation {
namespace {

struct Equivalence {
  std::string_view family;  ///< what its name begins with
  MutationKind kind;
  const char* before;  ///< regular expression; R stands for any register
  std::string_view reason;
};

using enum MutationKind;
constexpr Equivalence equivalences[]{
    {"forward", compare, "setp.lt.s32 R, R, (9|[0-9]+[13579]);",
     "columns of out begin at multiples of 8, the head dim is one: it is never one more than a column"},
    {"copy_rows", compare, "setp.lt.u64 R, R, 768;",
     "the rest of a row in whole runs is one less than a multiple of 8"},
    {"add_rows", compare, "setp.lt.u64 R, R, 768;",
     "the rest of a row in whole runs is one less than a multiple of 8"},
    {"plain_", compare, "setp.gt.s32 R, R, (1023|2047|4095|8191);", "no block has so many threads"},
    {"backward_queries", compare, "setp.gt.s32 R, R, (1023|2047);", "no block has so many threads"},
    {"plain_", compare, "setp.gt.s32 R, R, 63;", "tiles of 32 keys: the bit of a 64th key is not used"},
    {"max_logits", compare, "setp.gt.f32 R, R, R;", "of two equal values either is the larger one"},
    {"finish_forward", compare, "setp.gt.f32 R, R, R;",
     "a sink that equals the lse has the same share: exp2(0) is 1"},
};

/// Registers have other numbers with every change of a kernel.
std::string with_any_register(const std::string& instruction) {
  static const std::regex registers{"%[a-z]+[0-9]+"};
  return std::regex_replace(instruction, registers, "R");
}

}  // namespace

std::string_view reason_for_equivalence(const KernelInstance& instance, const Mutant& mutant) {
  for (const Equivalence& equivalence : equivalences) {
    if (mutant.kind == equivalence.kind && instance.family.starts_with(equivalence.family) &&
        std::regex_match(with_any_register(mutant.before), std::regex{equivalence.before})) {
      return equivalence.reason;
    }
  }
  return "";
}

}  // namespace hcp::mutation
