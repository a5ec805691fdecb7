/// Of the faults that mutants of the device kernels have, the cases must notice at least 95 % in every family
/// of kernels. A sample of the mutants, spread evenly over the code and over the kinds, takes a minute of two
/// cores; HCP_TEST_EXHAUSTIVE=1 runs all. What survives is printed with its line in the PTX of the build.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tests/mutation/equivalent_mutants.hpp"
#include "tests/mutation/mutation_run.hpp"

namespace hcp::mutation {
namespace {

constexpr double least_share_caught = 0.95;

/// Of each kind and kernel.
constexpr std::size_t sample_size = 3;

bool exhaustive() {
  return std::getenv("HCP_TEST_EXHAUSTIVE") != nullptr;
}

/// By family, in the order of the files.
std::map<std::string, std::vector<KernelText>> read_families() {
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator{HCP_BUILT_PTX}) {
    if (file.path().filename().string().ends_with(".compute_90.ptx")) {
      files.push_back(file.path());
    }
  }
  std::ranges::sort(files);
  std::map<std::string, std::vector<KernelText>> families;
  for (const auto& file : files) {
    std::ostringstream text;
    text << std::ifstream{file}.rdbuf();
    for (KernelText& kernel : kernels_of(text.str())) {
      families[instance_of(kernel.name).family].push_back(std::move(kernel));
    }
  }
  return families;
}

const std::map<std::string, std::vector<KernelText>>& families() {
  static const auto all = read_families();
  return all;
}

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const auto& [name, kernels] : families()) {
    names.push_back(name);
  }
  return names;
}

/// Runs `body` for 0 .. count - 1 on all threads; the first exception is thrown again at the end.
template <typename Body>
void for_all(std::size_t count, const Body& body) {
  std::exception_ptr error;
#pragma omp parallel for schedule(dynamic)
  for (std::size_t i = 0; i < count; ++i) {
    try {
      body(i);
    } catch (...) {
#pragma omp critical(hcp_mutation_error)
      error = error ? error : std::current_exception();
    }
  }
  if (error) {
    std::rethrow_exception(error);
  }
}

/// All of kernels on rows; else at most sample_size of each kind, evenly apart; where they begin differs from
/// kernel to kernel.
std::vector<const Mutant*> sample(const MutationSubject& subject, std::size_t kernel_number) {
  std::vector<const Mutant*> chosen;
  for (std::size_t kind = 0; kind < mutation_kinds; ++kind) {
    std::vector<const Mutant*> all;
    for (const Mutant& mutant : subject.mutants()) {
      if (static_cast<std::size_t>(mutant.kind) == kind) {
        all.push_back(&mutant);
      }
    }
    const bool few = !is_attention(subject.instance());  // and each takes milliseconds
    const std::size_t count = exhaustive() || few ? all.size() : std::min(sample_size, all.size());
    constexpr double golden_ratio = 0.618034;
    const double begin = std::fmod(golden_ratio * static_cast<double>(kernel_number), 1.0);
    for (std::size_t i = 0; i < count; ++i) {
      const double place = (static_cast<double>(i) + begin) / static_cast<double>(count);
      chosen.push_back(all[static_cast<std::size_t>(place * static_cast<double>(all.size()))]);
    }
  }
  return chosen;
}

struct Trial {
  const MutationSubject* subject;
  const Mutant* mutant;
  Outcome outcome = Outcome::survived;

  [[nodiscard]] bool survived() const {
    return outcome == Outcome::survived || outcome == Outcome::unreached;
  }
  [[nodiscard]] std::string_view equivalence() const {
    return reason_for_equivalence(subject->instance(), *mutant);
  }
  [[nodiscard]] std::string text() const {
    return subject->instance().name() + ", PTX line " +
           std::to_string(mutant->line + subject->kernel().line_offset) + ": " + mutant->before + " -> " +
           (mutant->after.empty() ? "nothing" : mutant->after) +
           (outcome == Outcome::unreached ? " (unreached)" : "");
  }
};

using Counts = std::array<int, outcomes>;  ///< by Outcome

int sum_of(const Counts& counts) {
  int sum = 0;
  for (const int count : counts) {
    sum += count;
  }
  return sum;
}

void print_row(const std::string& name, const Counts& counts) {
  std::printf("%-64s %6d", name.c_str(), sum_of(counts));
  for (const int count : counts) {
    std::printf(" %9d", count);
  }
  std::printf("\n");
}

/// By kernel, by kind, and what survived; without equivalent mutants.
Counts print_table(const std::vector<Trial>& trials) {
  Counts all{};
  std::map<std::string, Counts> by_kernel;
  std::map<std::string, Counts> by_kind;
  std::vector<std::string> survivors;
  for (const Trial& trial : trials) {
    if (!trial.equivalence().empty()) {
      continue;
    }
    const auto outcome = static_cast<std::size_t>(trial.outcome);
    ++all.at(outcome);
    ++by_kernel[trial.subject->instance().name()].at(outcome);
    ++by_kind[std::string{name_of(trial.mutant->kind)}].at(outcome);
    if (trial.survived()) {
      survivors.push_back(trial.text());
    }
  }
  std::printf("%-64s %6s %9s %9s %9s %9s %9s\n", "", "faults", "numbers", "findings", "counters", "survive",
              "unreached");
  for (const auto& table : {by_kernel, by_kind}) {
    for (const auto& [name, counts] : table) {
      print_row(name, counts);
    }
  }
  print_row("all", all);
  for (const std::string& survivor : survivors) {
    std::printf("survives: %s\n", survivor.c_str());
  }
  return all;
}

/// Nothing may notice an equivalent mutant but the clock: its instruction may be missing from the counts.
void check_equivalences(const std::vector<Trial>& trials) {
  std::map<std::string_view, int> by_reason;
  for (const Trial& trial : trials) {
    if (const std::string_view reason = trial.equivalence(); !reason.empty()) {
      ++by_reason[reason];
      EXPECT_TRUE(trial.survived() || trial.outcome == Outcome::counters)
          << trial.text() << "\nis not equivalent, against: " << reason;
    }
  }
  for (const auto& [reason, count] : by_reason) {
    std::printf("no faults: %d, %s\n", count, std::string{reason}.c_str());
  }
}

class PtxMutation : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Kernels, PtxMutation, testing::ValuesIn(family_names()),
                         [](const auto& info) { return info.param; });

TEST_P(PtxMutation, FaultsAreNoticed) {
  const std::vector<KernelText>& kernels = families().at(GetParam());
  std::vector<std::unique_ptr<MutationSubject>> subjects(kernels.size());
  for_all(kernels.size(), [&](std::size_t i) {
    subjects[i] = std::make_unique<MutationSubject>(kernels[i], exhaustive() ? Extent::all : Extent::some);
  });
  std::vector<Trial> trials;
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    for (const Mutant* mutant : sample(*subjects[i], i)) {
      trials.push_back({subjects[i].get(), mutant});
    }
  }
  for_all(trials.size(),
          [&](std::size_t i) { trials[i].outcome = trials[i].subject->outcome_of(*trials[i].mutant); });
  const Counts counts = print_table(trials);
  check_equivalences(trials);
  const int survived = counts[static_cast<std::size_t>(Outcome::survived)] +
                       counts[static_cast<std::size_t>(Outcome::unreached)];
  EXPECT_GE(sum_of(counts) - survived, least_share_caught * sum_of(counts));
}

}  // namespace
}  // namespace hcp::mutation
