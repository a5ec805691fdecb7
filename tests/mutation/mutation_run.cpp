#include "tests/mutation/mutation_run.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "tests/mutation/interpreted_kernel.hpp"

namespace hcp::mutation {
namespace {

bool costs_differ(const Mutant& mutant, const ptx::Counters& costs, const ptx::Counters& right) {
  return mutant.after.empty() ? costs.shared_extra_phases != right.shared_extra_phases : costs != right;
}

}  // namespace

MutationSubject::MutationSubject(KernelText kernel, Extent extent)
    : kernel_{std::move(kernel)},
      instance_{instance_of(kernel_.name)},
      mutants_{mutants_of(kernel_.text)},
      cases_{cases_of(instance_, extent)} {
  InterpretedKernel right{kernel_.text, instance_.entry};
  for (const KernelCase& one : cases_) {
    if (!one.is_right(right)) {
      throw std::runtime_error{instance_.name() + " is wrong without a mutation: " + one.name};
    }
    counters_.push_back(right.take_counters());
    if (counters_.back().warp_instructions == 0) {
      throw std::runtime_error{"the case '" + one.name + "' does not run " + instance_.name()};
    }
  }
}

Outcome MutationSubject::outcome_of(const Mutant& mutant) const {
  InterpretedKernel kernel{mutated(kernel_.text, mutant), instance_.entry};
  bool costs_more_or_less = false;
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    // A block of a right kernel has no more than all blocks together.
    kernel.allow_warp_instructions(2 * counters_[i].warp_instructions);
    try {
      if (!cases_[i].is_right(kernel)) {
        return Outcome::numbers;
      }
    } catch (const Found&) {
      return Outcome::finding;
    }
    costs_more_or_less = costs_differ(mutant, kernel.take_counters(), counters_[i]) || costs_more_or_less;
  }
  return costs_more_or_less ? Outcome::counters : reaches(mutant) ? Outcome::survived : Outcome::unreached;
}

bool MutationSubject::reaches(const Mutant& mutant) const {
  Mutant trap = mutant;
  trap.after = "trap;";
  InterpretedKernel kernel{mutated(kernel_.text, trap), instance_.entry};
  try {
    return std::ranges::any_of(cases_, [&](const KernelCase& one) { return !one.is_right(kernel); });
  } catch (const Found&) {
    return true;
  }
}

}  // namespace hcp::mutation
