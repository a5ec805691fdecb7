#include "src/comm/chunk_cutter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace hcp {
namespace {

using testing::ElementsAre;

/// Where a chunk lies: begin and size of each place.
std::vector<std::vector<std::size_t>> places_of_chunks(std::span<std::byte> memory,
                                                       std::vector<std::span<std::byte>> parts,
                                                       std::int64_t chunk_bytes) {
  ChunkCutter cutter{std::move(parts), chunk_bytes};
  std::vector<std::vector<std::size_t>> chunks;
  while (!cutter.is_done()) {
    std::vector<std::size_t>& chunk = chunks.emplace_back();
    for (const std::span<std::byte> place : cutter.next()) {
      chunk.push_back(static_cast<std::size_t>(place.data() - memory.data()));
      chunk.push_back(place.size());
    }
  }
  return chunks;
}

class ChunkCutterTest : public testing::Test {
 protected:
  std::array<std::byte, 100> bytes{};
  std::span<std::byte> memory{bytes};
};

TEST_F(ChunkCutterTest, ASmallMessageIsOneChunk) {
  EXPECT_THAT(places_of_chunks(memory, {memory.subspan(3, 1)}, 8), ElementsAre(ElementsAre(3, 1)));
  EXPECT_THAT(places_of_chunks(memory, {memory.first(8)}, 8), ElementsAre(ElementsAre(0, 8)));
}

TEST_F(ChunkCutterTest, TheLastChunkIsTheShorterOne) {
  EXPECT_THAT(places_of_chunks(memory, {memory.first(20)}, 8),
              ElementsAre(ElementsAre(0, 8), ElementsAre(8, 8), ElementsAre(16, 4)));
}

TEST_F(ChunkCutterTest, AChunkGoesOnInTheNextPart) {
  EXPECT_THAT(places_of_chunks(memory, {memory.subspan(50, 5), memory.first(4), memory.subspan(20, 6)}, 8),
              ElementsAre(ElementsAre(50, 5, 0, 3), ElementsAre(3, 1, 20, 6)));
}

TEST_F(ChunkCutterTest, PartsWithoutBytesAreNowhere) {
  EXPECT_THAT(places_of_chunks(memory, {memory.first(0), memory.subspan(9, 2), memory.first(0)}, 8),
              ElementsAre(ElementsAre(9, 2)));
  EXPECT_TRUE((ChunkCutter{{memory.first(0)}, 8}.is_done()));
}

}  // namespace
}  // namespace hcp
