#include "tests/harness/rank_failures.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hcp {
namespace {

constexpr double peers_patience_s = 10;

struct Failure {
  std::string file;
  int line = 0;
  std::string text;
};

/// `failures` as one string; fields end in a zero byte, which no field contains.
std::string packed(const std::vector<Failure>& failures) {
  std::string bytes;
  for (const Failure& failure : failures) {
    for (const std::string& field : {failure.file, std::to_string(failure.line), failure.text}) {
      bytes.append(field.c_str()).push_back('\0');
    }
  }
  return bytes;
}

std::vector<Failure> unpacked(const std::string& bytes) {
  std::vector<Failure> failures;
  std::istringstream fields{bytes};
  Failure failure;
  std::string line;
  while (std::getline(fields, failure.file, '\0') && std::getline(fields, line, '\0') &&
         std::getline(fields, failure.text, '\0')) {
    failure.line = std::stoi(line);
    failures.push_back(failure);
  }
  return failures;
}

class RankFailures : public testing::EmptyTestEventListener {
 public:
  RankFailures() {
    PMPI_Comm_dup(MPI_COMM_WORLD, &comm_);
    PMPI_Comm_rank(comm_, &rank_);
    PMPI_Comm_size(comm_, &size_);
  }

  void OnTestPartResult(const testing::TestPartResult& part) override {
    if (!part.failed() || sharing_) return;
    failures_.push_back(
        {part.file_name() == nullptr ? "" : part.file_name(), part.line_number(), part.message()});
    if (rank_ == 0) std::printf("  on rank 0 of %d\n", size_);
  }

  // The listener added last is told first when something ends: the failures added here count for this case.
  void OnTestEnd(const testing::TestInfo& test) override { share_verdict(test.name()); }
  void OnTestSuiteEnd(const testing::TestSuite& suite) override { share_verdict(suite.name()); }
  void OnEnvironmentsTearDownEnd(const testing::UnitTest&) override { PMPI_Comm_free(&comm_); }

 private:
  void share_verdict(const char* where) {
    wait_for_peers(where);
    const std::string mine = packed(std::exchange(failures_, {}));
    const int length = static_cast<int>(mine.size());
    int longest = 0;
    PMPI_Allreduce(&length, &longest, 1, MPI_INT, MPI_MAX, comm_);
    if (longest == 0) return;

    std::vector<int> lengths(static_cast<std::size_t>(size_));
    PMPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, comm_);
    std::vector<int> offsets(lengths.size() + 1);
    for (std::size_t r = 0; r < lengths.size(); ++r) offsets[r + 1] = offsets[r] + lengths[r];
    std::string all(static_cast<std::size_t>(offsets.back()), '\0');
    PMPI_Allgatherv(mine.data(), length, MPI_CHAR, all.data(), lengths.data(), offsets.data(), MPI_CHAR,
                    comm_);

    sharing_ = true;
    for (int r = 0; r < size_; ++r) {
      if (r == rank_) continue;
      const auto at = static_cast<std::size_t>(r);
      const auto begin = static_cast<std::size_t>(offsets[at]);
      for (const Failure& failure : unpacked(all.substr(begin, static_cast<std::size_t>(lengths[at])))) {
        ADD_FAILURE_AT(failure.file.c_str(), failure.line)
            << "on rank " << r << " of " << size_ << ": " << failure.text;
      }
    }
    sharing_ = false;
  }

  /// Returns when every rank has reached the same place.
  void wait_for_peers(const char* where) const {
    MPI_Request arrival = MPI_REQUEST_NULL;
    PMPI_Ibarrier(comm_, &arrival);
    const double begin_s = PMPI_Wtime();
    int arrived = 0;
    while (PMPI_Test(&arrival, &arrived, MPI_STATUS_IGNORE) == MPI_SUCCESS && arrived == 0) {
      if (!failures_.empty() && PMPI_Wtime() - begin_s > peers_patience_s) give_up(where);
      std::this_thread::sleep_for(std::chrono::microseconds{50});  // whoever is behind needs the core
    }
  }

  [[noreturn]] void give_up(const char* where) const {
    for (const Failure& failure : failures_) {
      std::fprintf(stderr, "%s:%d: Failure on rank %d of %d in %s, whose peers did not finish it\n%s\n",
                   failure.file.c_str(), failure.line, rank_, size_, where, failure.text.c_str());
    }
    PMPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 0;
  bool sharing_ = false;  ///< the failures seen now are those of the peers
  std::vector<Failure> failures_;
};

}  // namespace

void report_failures_of_all_ranks() {
  auto& listeners = testing::UnitTest::GetInstance()->listeners();
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 0) delete listeners.Release(listeners.default_result_printer());
  listeners.Append(new RankFailures);  // the list owns it
}

}  // namespace hcp
