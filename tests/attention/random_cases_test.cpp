/// Random cases against the dense definition, with the bytes that they move. A case is a function of its seed
/// and the number of ranks, and one that fails prints the command that runs it alone.
///
///   mpirun -n 6 attention_random_cases_test --seed 1000 --cases 2000
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tests/attention/case_checks.hpp"
#include "tests/attention/random_case.hpp"
#include "tests/harness/rank_failures.hpp"
#include "topology/mpi_collectives.hpp"

namespace hcp {
namespace {

struct Options {
  std::string program;
  std::uint32_t seed = 1;  ///< of the first case; the others follow
  std::uint32_t cases = 150;
};
Options options;

/// What runs now, where a signal handler can read it.
std::array<char, 1024> now_running{};

void tell_what_was_running(int signal) {
  const std::string_view text{now_running.data()};
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

std::string command_for(std::uint32_t seed, int ranks) {
  return ". jobs/mpi_environment.sh; hcp_mpirun " + std::to_string(ranks) + ' ' + options.program +
         " --seed " + std::to_string(seed) + " --cases 1";
}

class RandomCases : public testing::Test {
 protected:
  RandomCases() {
    for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGTERM}) {  // a crash, or the end of a hang
      std::signal(signal, tell_what_was_running);
    }
  }
  ~RandomCases() override {
    for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGTERM}) {
      std::signal(signal, SIG_DFL);
    }
  }

  void check(std::uint32_t seed) {
    const std::string command = command_for(seed, comm_.size());
    std::snprintf(now_running.data(), now_running.size(), "running: %s\n", command.c_str());
    SCOPED_TRACE("to run this case alone: " + command);
    const RandomCase drawn = random_case(seed, comm_.size());
    try {
      const Answer answer = solve(drawn.problem, comm_);
      const CaseErrors errors = check_case(drawn.problem, drawn.setting, answer, comm_);
      double& worst = worst_[coarser_type(drawn)];
      worst = std::max(worst, errors.worst);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
      throw;
    }
  }

  /// Whose tolerance holds.
  static std::size_t coarser_type(const RandomCase& drawn) {
    const DataType wire = drawn.setting.gradient_wire;
    const DataType storage = drawn.problem.type;
    return static_cast<std::size_t>(tolerance_of(wire) > tolerance_of(storage) ? wire : storage);
  }

  MpiCommunicator comm_ = MpiCommunicator::duplicate(MPI_COMM_WORLD);
  std::array<double, 3> worst_{};  // by type
};

TEST_F(RandomCases, AgreeWithTheDenseDefinition) {
  for (std::uint32_t i = 0; i < options.cases; ++i) {
    check(options.seed + i);
  }
  for (const DataType type : {DataType::fp32, DataType::bf16, DataType::fp16}) {
    const double worst = all_reduce(comm_, Reduction::max, worst_[static_cast<std::size_t>(type)]);
    if (comm_.rank() == 0) {
      std::printf(
          "seeds %u to %u, %d ranks: worst error where %s is the coarsest type %.2e, tolerance %.0e\n",
          options.seed, options.seed + options.cases - 1, comm_.size(), name_of(type).data(), worst,
          tolerance_of(type));
    }
  }
}

/// @throws std::invalid_argument
void read_options(int argc, char** argv) {
  options.program = std::filesystem::absolute(argv[0]).string();
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name{argv[i]};
    std::uint32_t* const value = name == "--seed"    ? &options.seed
                                 : name == "--cases" ? &options.cases
                                                     : nullptr;
    const std::string_view text{i + 1 < argc ? argv[i + 1] : ""};
    const char* const end = text.data() + text.size();
    if (!value || std::from_chars(text.data(), end, *value).ptr != end || text.empty()) {
      throw std::invalid_argument{"give --seed NUMBER and --cases NUMBER, not '" + std::string{name} + ' ' +
                                  std::string{text} + '\''};
    }
  }
}

}  // namespace
}  // namespace hcp

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const hcp::MpiEnvironment mpi{argc, argv};
  try {
    hcp::read_options(argc, argv);
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  hcp::report_failures_of_all_ranks();
  return RUN_ALL_TESTS();
}
