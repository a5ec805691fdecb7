/// Whether the cases of a kernel notice its mutants.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/mutation/kernel_cases.hpp"
#include "tests/mutation/kernel_text.hpp"
#include "tests/mutation/ptx_mutants.hpp"
#include "tests/ptx/report.hpp"

namespace hcp::mutation {

enum class Outcome {
  numbers,
  finding,
  counters,
  survived,
  unreached  ///< survived, and no case ever executes the instruction
};
inline constexpr std::size_t outcomes = 5;

/// A kernel with its cases and what it costs when it is right.
class MutationSubject {
 public:
  /// Runs all cases.
  /// @throws std::runtime_error if the kernel is wrong without a mutation
  MutationSubject(KernelText kernel, Extent extent);

  [[nodiscard]] const KernelInstance& instance() const { return instance_; }
  [[nodiscard]] const KernelText& kernel() const { return kernel_; }
  [[nodiscard]] const std::vector<Mutant>& mutants() const { return mutants_; }

  /// By the first case that is wrong or has a finding, else by the first that costs something else: bank
  /// conflicts, and unless an instruction is missing, which shows in the counts by itself, every counter.
  [[nodiscard]] Outcome outcome_of(const Mutant& mutant) const;

 private:
  [[nodiscard]] bool reaches(const Mutant& mutant) const;

  KernelText kernel_;
  KernelInstance instance_;
  std::vector<Mutant> mutants_;
  std::vector<KernelCase> cases_;
  std::vector<ptx::Counters> counters_;  // of each case
};

}  // namespace hcp::mutation
