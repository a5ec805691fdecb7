#include "topology/mpi_collectives.hpp"

#include <gmock/gmock.h>

#include <limits>
#include <numeric>

namespace hcp {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class Collectives : public ::testing::Test {
 protected:
  MpiCommunicator world = MpiCommunicator::duplicate(MPI_COMM_WORLD);
  int rank = world.rank();
  int size = world.size();
};

TEST_F(Collectives, ReduceDoubles) {
  EXPECT_EQ(all_reduce(world, Reduction::max, 0.5 + rank), 0.5 + (size - 1));
  EXPECT_EQ(all_reduce(world, Reduction::min, 0.5 + rank), 0.5);
  EXPECT_EQ(all_reduce(world, Reduction::sum, 0.5 + rank), 0.5 * size + size * (size - 1) / 2.0);
  std::vector<double> values{1.0 * rank, -1.0 * rank};
  all_reduce(world, Reduction::max, std::span{values});
  EXPECT_THAT(values, ::testing::ElementsAre(size - 1, 0));
}

TEST_F(Collectives, ReduceIntegersBeyondDoublePrecision) {
  const std::int64_t large = (std::int64_t{1} << 60) + 1;
  EXPECT_EQ(all_reduce(world, Reduction::max, large + rank), large + size - 1);
  EXPECT_EQ(all_reduce(world, Reduction::min, -large - rank), -large - (size - 1));
  EXPECT_EQ(all_reduce(world, Reduction::sum, std::int64_t{rank} << 40),
            std::int64_t{size * (size - 1) / 2} << 40);
}

TEST_F(Collectives, GatherUnequalLengths) {
  const std::vector<double> mine(static_cast<std::size_t>(rank), 10.0 + rank);  // rank 0 gives nothing
  const auto check = [&](const std::vector<std::vector<double>>& all) {
    ASSERT_THAT(all, SizeIs(size));
    for (int from = 0; from < size; ++from) {
      EXPECT_EQ(all[static_cast<std::size_t>(from)],
                std::vector<double>(static_cast<std::size_t>(from), 10.0 + from));
    }
  };
  check(all_gather(world, std::span<const double>{mine}));
  const int root = size - 1;
  const std::vector<std::vector<double>> at_root = gather(world, std::span<const double>{mine}, root);
  if (rank == root) {
    check(at_root);
  } else {
    EXPECT_THAT(at_root, IsEmpty());
  }
}

TEST_F(Collectives, GatherBytesAndTexts) {
  const std::vector<std::byte> mine(static_cast<std::size_t>(3 * (size - rank)),
                                    static_cast<std::byte>(rank));
  const auto all = all_gather(world, std::span<const std::byte>{mine});
  ASSERT_THAT(all, SizeIs(size));
  EXPECT_EQ(all[static_cast<std::size_t>(rank)], mine);
  EXPECT_EQ(all.back(), std::vector<std::byte>(3, static_cast<std::byte>(size - 1)));
  EXPECT_THAT(gather(world, std::span<const std::byte>{mine}, 0), SizeIs(rank == 0 ? size : 0));

  const std::vector<std::string> texts = all_gather(world, std::string(static_cast<std::size_t>(rank), 'x'));
  ASSERT_THAT(texts, SizeIs(size));
  EXPECT_EQ(texts.back(), std::string(static_cast<std::size_t>(size - 1), 'x'));
}

TEST_F(Collectives, GatherRefusesTwoGibibytesOnEveryRank) {
  // Only the length is looked at before the refusal, never the bytes behind it.
  const std::byte nothing{};
  const std::span<const std::byte> too_much{&nothing, std::size_t{1} << 31};
  EXPECT_THROW(static_cast<void>(all_gather(world, rank == 0 ? too_much : too_much.first(1))),
               std::length_error);
}

TEST_F(Collectives, BroadcastText) {
  const int root = size - 1;
  EXPECT_EQ(broadcast(world, rank == root ? "from the last rank" : "something longer than that text", root),
            "from the last rank");
  EXPECT_EQ(broadcast(world, rank == 0 ? "" : "other", 0), "");
}

}  // namespace
}  // namespace hcp
