#include <gmock/gmock.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "tests/ptx/ptx_case.hpp"

namespace hcp::ptx {
namespace {

using Words = Column<std::uint32_t>;

Words lanes() {
  Words values(32);
  std::iota(values.begin(), values.end(), 0U);
  return values;
}

/// What CUDA's documentation says of __shfl_*_sync(value, by, width) where the value is the lane.
std::uint32_t shuffled(const std::string& mode, int lane, int by, int width) {
  const int first = lane / width * width;
  const int last = first + width - 1;
  int from = lane;
  if (mode == "idx") {
    from = first + by % width;
  } else if (mode == "up") {
    from = lane - by < first ? lane : lane - by;
  } else if (mode == "down") {
    from = lane + by > last ? lane : lane + by;
  } else if ((lane ^ by) <= last) {
    from = lane ^ by;
  }
  return static_cast<std::uint32_t>(from);
}

TEST(WarpInstructions, ShufflesOfEveryWidth) {
  for (const std::string mode : {"idx", "up", "down", "bfly"}) {
    for (const int width : {32, 16, 8, 4, 2}) {
      for (const int by : {0, 1, 2, 3, 5, 16, 31}) {
        // As nvcc composes it: the mask that parts the warp, and as clamp 0 for up and else 31.
        const int c = ((32 - width) << 8) | (mode == "up" ? 0 : 31);
        const auto result =
            evaluate<std::uint32_t>("shfl.sync." + mode + ".b32 %r7|%p0, %r0, " + std::to_string(by) + ", " +
                                        std::to_string(c) + ", -1;",
                                    lanes());
        for (int lane = 0; lane < 32; ++lane) {
          ASSERT_EQ(result[static_cast<std::size_t>(lane)], shuffled(mode, lane, by, width))
              << mode << " by " << by << ", width " << width << ", lane " << lane;
        }
      }
    }
  }
}

TEST(WarpInstructions, ShuffleTellsWhatIsOutOfRange) {
  const auto result = evaluate<std::uint32_t>(
      "shfl.sync.down.b32 %r7|%p0, %r0, 4, 31, -1; selp.u32 %r7, 1, 0, %p0;", lanes());
  for (std::size_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(result[lane], lane + 4 <= 31 ? 1U : 0U);
  }
}

TEST(WarpInstructions, Votes) {
  const std::string odd = "and.b32 %r1, %r0, 1; setp.ne.u32 %p0, %r1, 0; setp.lt.u32 %p1, %r0, 32;";
  const Words yes(32, 1);
  const Words no(32, 0);
  const auto vote = [&](const std::string& text) {
    return evaluate<std::uint32_t>(odd + text + " selp.u32 %r7, 1, 0, %p2;", lanes());
  };
  EXPECT_EQ(evaluate<std::uint32_t>(odd + "vote.sync.ballot.b32 %r7, %p0, -1;", lanes()),
            Words(32, 0xaaaaaaaa));
  EXPECT_EQ(evaluate<std::uint32_t>(odd + "vote.sync.ballot.b32 %r7, !%p0, -1;", lanes()),
            Words(32, 0x55555555));
  EXPECT_EQ(vote("vote.sync.any.pred %p2, %p0, -1;"), yes);
  EXPECT_EQ(vote("vote.sync.all.pred %p2, %p0, -1;"), no);
  EXPECT_EQ(vote("vote.sync.all.pred %p2, %p1, -1;"), yes);
  EXPECT_EQ(vote("vote.sync.uni.pred %p2, %p0, -1;"), no);
  EXPECT_EQ(vote("vote.sync.uni.pred %p2, !%p1, -1;"), yes);
}

TEST(WarpInstructions, VotesOfTheMembersAlone) {
  const auto result = evaluate<std::uint32_t>(
      "mov.u32 %r7, 99; setp.lt.u32 %p0, %r0, 16; setp.ne.u32 %p1, %r0, 3;"
      "@%p0 vote.sync.ballot.b32 %r7, %p1, 65535;",
      lanes());
  for (std::size_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(result[lane], lane < 16 ? 0xfff7U : 99U);
  }
}

TEST(WarpInstructions, TwoGroupsOfMembersAtOneInstruction) {
  const auto result = evaluate<std::uint32_t>(
      "setp.lt.u32 %p0, %r0, 16; selp.b32 %r1, 65535, -65536, %p0; redux.sync.add.u32 %r7, %r0, %r1;",
      lanes());
  for (std::size_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(result[lane], lane < 16 ? 120U : 376U);
  }
}

TEST(WarpInstructions, Reductions) {
  const std::string setup = "sub.s32 %r1, %r0, 5; ";
  EXPECT_EQ(evaluate<std::uint32_t>(setup + "redux.sync.add.s32 %r7, %r1, -1;", lanes()), Words(32, 336));
  EXPECT_EQ(evaluate<std::uint32_t>(setup + "redux.sync.min.s32 %r7, %r1, -1;", lanes()),
            Words(32, 0xfffffffb));
  EXPECT_EQ(evaluate<std::uint32_t>(setup + "redux.sync.max.u32 %r7, %r1, -1;", lanes()),
            Words(32, 0xffffffff));
  EXPECT_EQ(evaluate<std::uint32_t>("redux.sync.or.b32 %r7, %r0, -1;", lanes()), Words(32, 31));
  EXPECT_EQ(evaluate<std::uint32_t>("redux.sync.xor.b32 %r7, %r0, -1;", lanes()), Words(32, 0));
}

TEST(WarpInstructions, EqualValuesMatch) {
  const auto result =
      evaluate<std::uint32_t>("and.b32 %r1, %r0, 3; match.any.sync.b32 %r7, %r1, -1;", lanes());
  for (std::size_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(result[lane], 0x11111111U << (lane % 4));
  }
}

TEST(WarpInstructions, LanesOfABranch) {
  const auto result = evaluate<std::uint32_t>(
      "setp.lt.u32 %p0, %r0, 8; @%p0 bra FEW; activemask.b32 %r7; bra DONE; FEW: activemask.b32 %r7; DONE:",
      lanes());
  for (std::size_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(result[lane], lane < 8 ? 0xffU : 0xffffff00U);
  }
}

}  // namespace
}  // namespace hcp::ptx
