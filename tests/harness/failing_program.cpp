/// Tests that fail on purpose; check_harness.sh runs them one by one and looks at the outcome.
#include <gtest/gtest.h>
#include <mpi.h>

#include <stdexcept>

namespace {

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

TEST(Harness, Passes) {
  EXPECT_GE(world_rank(), 0);
}

TEST(Harness, FailsOnRank1) {
  EXPECT_NE(world_rank(), 1) << "the rank that was meant to fail";
}

TEST(Harness, FailsOnRank0) {
  EXPECT_NE(world_rank(), 0) << "the rank that was meant to fail";
}

TEST(Harness, FailsEverywhere) {
  EXPECT_LT(world_rank(), 0) << "the rank that was meant to fail";
}

TEST(Harness, ThrowsOnRank2) {
  if (world_rank() == 2) throw std::runtime_error{"the exception that was meant to be thrown"};
}

TEST(Harness, ThrowsOnRank2WhileOthersWait) {
  if (world_rank() == 2) throw std::runtime_error{"the exception that was meant to be thrown"};
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST(Harness, HangsOnRank1) {
  int flag = 0;
  while (world_rank() == 1) MPI_Iprobe(1, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

class FailingSetUp : public testing::Test {
 protected:
  static void SetUpTestSuite() { EXPECT_NE(world_rank(), 1) << "the rank that was meant to fail"; }
};

TEST_F(FailingSetUp, OnRank1) {}

}  // namespace
