#include "topology/mpi_collectives.hpp"

#include <gmock/gmock.h>

#include <algorithm>

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
  const std::vector<std::vector<double>> all = all_gather(world, std::span<const double>{mine});
  ASSERT_THAT(all, SizeIs(size));
  for (int from = 0; from < size; ++from) {
    EXPECT_EQ(all[static_cast<std::size_t>(from)],
              std::vector<double>(static_cast<std::size_t>(from), 10.0 + from));
  }
}

/// What rank 0 is handed: (rank, bytes of a piece), in order, and whether each byte is the right one.
class VisitByRank : public Collectives {
 protected:
  struct Piece {
    int rank;
    std::size_t bytes;
    bool operator==(const Piece&) const = default;
  };

  /// Byte `at` of a rank's data.
  static std::byte value(int of_rank, std::size_t at) {
    return static_cast<std::byte>((31 * static_cast<std::size_t>(of_rank) + at) % 251);
  }

  std::vector<Piece> visit(std::size_t my_bytes, std::int64_t piece_bytes) {
    std::vector<std::byte> mine(my_bytes);
    for (std::size_t at = 0; at < my_bytes; ++at) {
      mine[at] = value(rank, at);
    }
    std::vector<Piece> pieces;
    std::size_t at = 0;
    visit_by_rank(world, mine, piece_bytes, [&](int from, std::span<const std::byte> piece) {
      at = pieces.empty() || pieces.back().rank != from ? 0 : at;
      for (const std::byte byte : piece) {
        wrong += byte == value(from, at++) ? 0 : 1;
      }
      pieces.push_back({from, piece.size()});
    });
    return pieces;
  }

  int wrong = 0;
};

TEST_F(VisitByRank, RankByRankInPieces) {
  // Rank r gives 12 r bytes, in pieces of 16: rank 3 gives 16, 16 and 4.
  const std::vector<Piece> pieces = visit(static_cast<std::size_t>(12 * rank), 16);
  std::vector<Piece> expected;
  for (int from = 0; rank == 0 && from < size; ++from) {
    for (int left = 12 * from; left > 0; left -= 16) {
      expected.push_back({from, static_cast<std::size_t>(std::min(left, 16))});
    }
  }
  EXPECT_EQ(pieces, expected);
  EXPECT_EQ(wrong, 0);
}

TEST_F(VisitByRank, PiecesThatArriveBeforeRankZeroAsksAndLargeOnes) {
  const std::vector<Piece> pieces = visit(std::size_t{3} << 20, std::int64_t{1} << 20);
  EXPECT_THAT(pieces, SizeIs(rank == 0 ? 3 * size : 0));
  EXPECT_EQ(wrong, 0);
}

TEST_F(VisitByRank, NobodyGivesAnything) {
  EXPECT_THAT(visit(0, 16), IsEmpty());
}

TEST_F(VisitByRank, TwoGibibytesInAllButNeverInMemory) {
  // 2 GiB + 1 piece from every rank but 0, which would not fit an int nor, gathered, the memory of a test.
  constexpr std::size_t piece = std::size_t{32} << 20;
  if (size != 2) {
    return;  // once is enough
  }
  std::vector<std::byte> mine(rank == 0 ? 0 : piece * 65);
  std::int64_t bytes = 0;
  visit_by_rank(world, mine, piece, [&](int, std::span<const std::byte> part) { bytes += std::ssize(part); });
  EXPECT_EQ(bytes, rank == 0 ? std::int64_t{65} * piece : 0);
}

TEST_F(VisitByRank, RefusesPiecesThatAreNone) {
  EXPECT_THROW(visit(1, 0), std::invalid_argument);
  EXPECT_THROW(visit(1, std::int64_t{1} << 31), std::invalid_argument);
}

TEST_F(Collectives, GatherBytesAndTexts) {
  const std::vector<std::byte> mine(static_cast<std::size_t>(3 * (size - rank)),
                                    static_cast<std::byte>(rank));
  const auto all = all_gather(world, std::span<const std::byte>{mine});
  ASSERT_THAT(all, SizeIs(size));
  EXPECT_EQ(all[static_cast<std::size_t>(rank)], mine);
  EXPECT_EQ(all.back(), std::vector<std::byte>(3, static_cast<std::byte>(size - 1)));

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
