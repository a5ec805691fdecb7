#include "src/job/agreement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

namespace hcp {
namespace {

class Agreement : public testing::Test {
 protected:
  MpiCommunicator world = MpiCommunicator::duplicate(MPI_COMM_WORLD);
  int rank = world.rank();
  int last = world.size() - 1;

  /// What each rank gets to hear if those from `first` on refuse.
  std::string heard(int first) {
    try {
      agree(world, [&] {
        if (rank >= first) {
          throw std::invalid_argument{"refused by rank " + std::to_string(rank)};
        }
      });
    } catch (const InputError& error) {
      return error.what();
    }
    return "nothing";
  }
};

TEST_F(Agreement, TheLowestRankThatRefusesIsHeardByAll) {
  EXPECT_EQ(heard(0), "refused by rank 0");
  EXPECT_EQ(heard(last), "refused by rank " + std::to_string(last));
  EXPECT_EQ(heard(last + 1), "nothing");
}

TEST_F(Agreement, WhatIsMadeComesBackAndNeedNotBeCopied) {
  EXPECT_EQ(*agree_on(world, [&] { return std::make_unique<const int>(rank); }), rank);
  EXPECT_THROW(static_cast<void>(agree_on(world,
                                          [&]() -> int {
                                            if (rank == last) {
                                              throw std::invalid_argument{"no"};
                                            }
                                            return rank;
                                          })),
               InputError);
}

TEST_F(Agreement, OtherErrorsAreNotTheUsers) {
  EXPECT_THROW(agree(world, [] { throw std::length_error{"too long"}; }), std::length_error);
}

}  // namespace
}  // namespace hcp
