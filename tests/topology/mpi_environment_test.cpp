#include "topology/mpi_environment.hpp"

#include <gmock/gmock.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace hcp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(CheckMpi, SaysCallPlaceRankAndText) {
  const int world_rank = MpiCommunicator::duplicate(MPI_COMM_WORLD).rank();
  check_mpi(MPI_SUCCESS, "MPI_Barrier");
  try {
    check_mpi(MPI_ERR_COUNT, "MPI_Send");
    FAIL() << "no exception";
  } catch (const MpiError& error) {
    EXPECT_EQ(error.code(), MPI_ERR_COUNT);
    EXPECT_THAT(error.what(), HasSubstr("MPI_Send failed on rank " + std::to_string(world_rank) + " at "));
    EXPECT_THAT(error.what(), HasSubstr("mpi_environment_test.cpp:"));
    EXPECT_THAT(error.what(), HasSubstr("MPI_ERR_COUNT"));
  }
}

TEST(MpiCommunicator, ErrorsInsideACommunicatorAreReturned) {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  const auto world = MpiCommunicator::duplicate(MPI_COMM_WORLD);
  const MpiCommunicator child = world.split(0, world.rank());
  const int beyond = child.size();
  EXPECT_THROW(check_mpi(MPI_Send(nullptr, 0, MPI_BYTE, beyond, 0, child.get()), "MPI_Send"), MpiError);
}

TEST(MpiCommunicator, DuplicateKeepsOrderAndSplitFollowsKey) {
  const auto world = MpiCommunicator::duplicate(MPI_COMM_WORLD);
  int result = MPI_UNEQUAL;
  ASSERT_EQ(MPI_Comm_compare(MPI_COMM_WORLD, world.get(), &result), MPI_SUCCESS);
  EXPECT_EQ(result, MPI_CONGRUENT);
  const MpiCommunicator reversed = world.split(0, -world.rank());
  EXPECT_EQ(reversed.rank(), world.size() - 1 - world.rank());
  const MpiCommunicator parity = world.split(world.rank() % 2, world.rank());
  EXPECT_EQ(parity.rank(), world.rank() / 2);
  EXPECT_EQ(parity.size(), (world.size() + 1 - world.rank() % 2) / 2);
}

TEST(MpiCommunicator, MovesItsHandle) {
  auto world = MpiCommunicator::duplicate(MPI_COMM_WORLD);
  const MPI_Comm handle = world.get();
  MpiCommunicator moved{std::move(world)};
  EXPECT_EQ(moved.get(), handle);
  EXPECT_EQ(world.get(), MPI_COMM_NULL);  // NOLINT(bugprone-use-after-move): null is the promise
  auto target = MpiCommunicator::duplicate(MPI_COMM_WORLD);
  target = std::move(moved);
  EXPECT_EQ(target.get(), handle);
}

TEST(SilentRanks, AreThoseThatDoNotGiveUp) {
  const auto world = MpiCommunicator::duplicate(MPI_COMM_WORLD);
  const int last = world.size() - 1;
  check_mpi(MPI_Barrier(world.get()), "MPI_Barrier");
  if (world.rank() < last) {
    EXPECT_THAT(silent_ranks(2.0), ElementsAre(last));
  }
  check_mpi(MPI_Barrier(world.get()), "MPI_Barrier");
  if (world.rank() == last) {  // now all others have spoken, and it does not wait longer than it must
    EXPECT_THAT(silent_ranks(60.0), IsEmpty());
  }
}

/// Counts how often communicators with our attribute are freed.
int count_free(MPI_Comm /*comm*/, int /*key*/, void* counter, void* /*extra*/) {
  ++*static_cast<int*>(counter);
  return MPI_SUCCESS;
}

TEST(MpiCommunicator, FreesOnceAndNotWhileAnExceptionUnwinds) {
  int key = MPI_KEYVAL_INVALID;
  int freed = 0;
  ASSERT_EQ(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, count_free, &key, nullptr), MPI_SUCCESS);
  {
    auto first = MpiCommunicator::duplicate(MPI_COMM_WORLD);
    ASSERT_EQ(MPI_Comm_set_attr(first.get(), key, &freed), MPI_SUCCESS);
    const MpiCommunicator second{std::move(first)};
    EXPECT_EQ(freed, 0);
  }
  EXPECT_EQ(freed, 1);

  MPI_Comm left = MPI_COMM_NULL;
  try {
    const auto abandoned = MpiCommunicator::duplicate(MPI_COMM_WORLD);
    ASSERT_EQ(MPI_Comm_set_attr(abandoned.get(), key, &freed), MPI_SUCCESS);
    left = abandoned.get();
    throw std::runtime_error{"unwind"};
  } catch (const std::runtime_error&) {
    EXPECT_EQ(freed, 1);
  }
  ASSERT_EQ(MPI_Comm_free(&left), MPI_SUCCESS);
  EXPECT_EQ(freed, 2);
  ASSERT_EQ(MPI_Comm_free_keyval(&key), MPI_SUCCESS);
}

}  // namespace
}  // namespace hcp
