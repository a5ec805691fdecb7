// Buffers and the ledger of live bytes.

#include "kernels/buffer.hpp"

#include <gmock/gmock.h>

#include <cstring>
#include <stdexcept>

namespace hcp {
namespace {

TEST(Buffer, IsAlignedAndBookedWhileItLives) {
  MemoryLedger ledger;
  {
    const Buffer small{ledger, MemoryCategory::kv_ring, 100};
    const Buffer large{ledger, MemoryCategory::kv_ring, std::int64_t{50} << 20};
    std::memset(large.data(), 1, static_cast<std::size_t>(large.bytes()));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(small.data()) % 64, 0U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(large.data()) % 64, 0U);
    EXPECT_EQ(ledger.live(MemoryCategory::kv_ring), 100 + (std::int64_t{50} << 20));
    EXPECT_EQ(ledger.live(MemoryCategory::qkv), 0);
  }
  EXPECT_EQ(ledger.live(MemoryCategory::kv_ring), 0);
  EXPECT_EQ(ledger.peak(MemoryCategory::kv_ring), 100 + (std::int64_t{50} << 20));
}

TEST(Buffer, MovesWithoutBookingTwice) {
  MemoryLedger ledger;
  Buffer first{ledger, MemoryCategory::qkv, 64};
  Buffer second{std::move(first)};
  EXPECT_EQ(ledger.live(MemoryCategory::qkv), 64);
  Buffer third{ledger, MemoryCategory::result, 32};
  third = std::move(second);
  EXPECT_EQ(ledger.live(MemoryCategory::qkv), 64);
  EXPECT_EQ(ledger.live(MemoryCategory::result), 0) << "the overwritten buffer is freed at once";
  third = Buffer{};
  EXPECT_EQ(ledger.live(MemoryCategory::qkv), 0);
}

TEST(Buffer, OfNoBytesBooksNothing) {
  MemoryLedger ledger;
  const Buffer empty{ledger, MemoryCategory::qkv, 0};
  EXPECT_EQ(empty.data(), nullptr);
  EXPECT_TRUE(ledger.take_changes().empty());
  EXPECT_THROW((Buffer{ledger, MemoryCategory::qkv, -1}), std::logic_error);
}

TEST(MemoryLedger, PeaksAreOfTheSumAndOfEachCategory) {
  MemoryLedger ledger;
  ledger.add(MemoryCategory::qkv, 10);
  ledger.remove(MemoryCategory::qkv, 10);
  ledger.add(MemoryCategory::result, 7);
  ledger.add(MemoryCategory::saved, 5);
  EXPECT_EQ(ledger.peak(MemoryCategory::qkv), 10);
  EXPECT_EQ(ledger.peak_total(), 12);
  ledger.remove(MemoryCategory::result, 7);
  ledger.reset_peaks();
  EXPECT_EQ(ledger.peak(MemoryCategory::qkv), 0);
  EXPECT_EQ(ledger.peak_total(), 5);

  const auto changes = ledger.take_changes();
  ASSERT_EQ(changes.size(), 5U);
  EXPECT_EQ(changes[1].live_bytes, 0);
  EXPECT_EQ(changes[3].category, MemoryCategory::saved);
  EXPECT_EQ(changes[3].live_bytes, 5);
  EXPECT_LE(changes[0].time_s, changes[4].time_s);
  EXPECT_TRUE(ledger.take_changes().empty());
}

TEST(MemoryLedger, ACategoryCannotGoNegative) {
  MemoryLedger ledger;
  ledger.add(MemoryCategory::qkv, 10);
  EXPECT_THROW(ledger.remove(MemoryCategory::result, 1), std::logic_error);
  EXPECT_THROW(ledger.remove(MemoryCategory::qkv, 11), std::logic_error);
  EXPECT_EQ(ledger.live(MemoryCategory::qkv), 10);
}

TEST(MemoryLedger, EveryCategoryHasItsOwnName) {
  EXPECT_EQ(name_of(MemoryCategory::qkv), "qkv");
  EXPECT_EQ(name_of(MemoryCategory::head_scatter), "head_scatter");
}

}  // namespace
}  // namespace hcp
