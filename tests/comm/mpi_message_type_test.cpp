#include "src/comm/mpi_message_type.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace hcp {
namespace {

constexpr std::int64_t mib = 1048576;
constexpr std::int64_t gib = 1024 * mib;

TEST(MpiBlocks, SizesAroundABlock) {
  EXPECT_EQ(split_into_mpi_blocks(1), (MpiBlocks{.blocks = 0, .tail_bytes = 1}));
  EXPECT_EQ(split_into_mpi_blocks(mib - 1), (MpiBlocks{.blocks = 0, .tail_bytes = 1048575}));
  EXPECT_EQ(split_into_mpi_blocks(mib), (MpiBlocks{.blocks = 1, .tail_bytes = 0}));
  EXPECT_EQ(split_into_mpi_blocks(mib + 1), (MpiBlocks{.blocks = 1, .tail_bytes = 1}));
}

TEST(MpiBlocks, SizesAroundTwoGib) {
  EXPECT_EQ(split_into_mpi_blocks(2 * gib - 1), (MpiBlocks{.blocks = 2047, .tail_bytes = 1048575}));
  EXPECT_EQ(split_into_mpi_blocks(2 * gib), (MpiBlocks{.blocks = 2048, .tail_bytes = 0}));
  EXPECT_EQ(split_into_mpi_blocks(2 * gib + 1), (MpiBlocks{.blocks = 2048, .tail_bytes = 1}));
}

TEST(MpiBlocks, MultiplesOfTwoGibKeepEveryByte) {
  for (std::int64_t k = 1; k < 1048576; k = 3 * k + 1) {
    for (const std::int64_t extra : {-1, 0, 1, 12345}) {
      const std::int64_t bytes = k * 2 * gib + extra;
      const MpiBlocks split = split_into_mpi_blocks(bytes);
      EXPECT_EQ(split.blocks, (bytes - split.tail_bytes) / mib);
      EXPECT_EQ(split.blocks * mib + split.tail_bytes, bytes);
      EXPECT_GE(split.tail_bytes, 0);
      EXPECT_LT(split.tail_bytes, mib);
    }
  }
}

TEST(MpiBlocks, RefusesWhatNoIntCanCount) {
  const std::int64_t largest = 2147483647 * mib + mib - 1;
  EXPECT_EQ(split_into_mpi_blocks(largest), (MpiBlocks{.blocks = 2147483647, .tail_bytes = 1048575}));
  EXPECT_THROW(static_cast<void>(split_into_mpi_blocks(largest + 1)), std::length_error);
  EXPECT_THROW(static_cast<void>(split_into_mpi_blocks(-1)), std::length_error);
}

}  // namespace
}  // namespace hcp
