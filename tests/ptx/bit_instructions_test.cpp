#include <gmock/gmock.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/ptx/ptx_case.hpp"

namespace hcp::ptx {
namespace {

using testing::ElementsAre;
using Words = Column<std::uint32_t>;
using Longs = Column<std::uint64_t>;

Words random_words(unsigned seed) {
  std::mt19937 random{seed};
  Words words(64);
  for (std::uint32_t& word : words) {
    word = static_cast<std::uint32_t>(random());
  }
  return words;
}

TEST(BitInstructions, Logic) {
  const Words a{0xff00ff00};
  const Words b{0x0ff00ff0};
  EXPECT_THAT((evaluate<std::uint32_t>("and.b32 %r7, %r0, %r1;", a, b)), ElementsAre(0x0f000f00));
  EXPECT_THAT((evaluate<std::uint32_t>("or.b32 %r7, %r0, %r1;", a, b)), ElementsAre(0xfff0fff0));
  EXPECT_THAT((evaluate<std::uint32_t>("xor.b32 %r7, %r0, %r1;", a, b)), ElementsAre(0xf0f0f0f0));
  EXPECT_THAT((evaluate<std::uint32_t>("not.b32 %r7, %r0;", a)), ElementsAre(0x00ff00ff));
  EXPECT_THAT((evaluate<std::uint64_t>("and.b64 %d7, %d0, -4294967296;", Longs{0x123456789abcdef0})),
              ElementsAre(0x1234567800000000));
  EXPECT_THAT((evaluate<std::uint32_t>("cnot.b32 %r7, %r0;", Words{0, 5})), ElementsAre(1, 0));
}

TEST(BitInstructions, EveryTableOfThreeInputs) {
  const Words a = random_words(1);
  const Words b = random_words(2);
  const Words c = random_words(3);
  for (std::uint32_t table = 0; table < 256; table += 5) {
    const auto result =
        evaluate<std::uint32_t>("lop3.b32 %r7, %r0, %r1, %r2, " + std::to_string(table) + ";", a, b, c);
    for (std::size_t i = 0; i < a.size(); ++i) {
      std::uint32_t expected = 0;
      for (int bit = 0; bit < 32; ++bit) {  // bit by bit, as the ISA defines the table: index a b c
        const std::uint32_t index = (a[i] >> bit & 1) * 4 + (b[i] >> bit & 1) * 2 + (c[i] >> bit & 1);
        expected |= (table >> index & 1) << bit;
      }
      ASSERT_EQ(result[i], expected) << table;
    }
  }
}

TEST(BitInstructions, ShiftsByTheWidthAndMore) {
  const Words a(6, 0x80000001);
  const Words by{0, 1, 31, 32, 33, 0xffffffff};
  EXPECT_THAT((evaluate<std::uint32_t>("shl.b32 %r7, %r0, %r1;", a, by)),
              ElementsAre(0x80000001, 2, 0x80000000, 0, 0, 0));
  EXPECT_THAT((evaluate<std::uint32_t>("shr.u32 %r7, %r0, %r1;", a, by)),
              ElementsAre(0x80000001, 0x40000000, 1, 0, 0, 0));
  EXPECT_THAT((evaluate<std::uint32_t>("shr.s32 %r7, %r0, %r1;", a, by)),
              ElementsAre(0x80000001, 0xc0000000, ~0U, ~0U, ~0U, ~0U));
  EXPECT_THAT((evaluate<std::uint64_t>("shl.b64 %d7, %d0, %r1;", Longs(3, 1), Words{63, 64, 32})),
              ElementsAre(1ULL << 63, 0, 1ULL << 32));
  EXPECT_THAT((evaluate<std::uint64_t>("shr.s64 %d7, %d0, 64;", Longs{1ULL << 63, 1})),
              ElementsAre(~0ULL, 0));
  EXPECT_THAT((evaluate<std::uint16_t>("shr.u16 %s7, %s0, 4;", Column<std::uint16_t>{0x8000})),
              ElementsAre(0x800));
  EXPECT_THAT((evaluate<std::uint16_t>("shl.b16 %s7, %s0, 16;", Column<std::uint16_t>{0x8001})),
              ElementsAre(0));
}

TEST(BitInstructions, FunnelShifts) {
  const Words low(3, 0x11112222);
  const Words high(3, 0xaaaabbbb);
  const Words by{8, 32, 36};
  EXPECT_THAT((evaluate<std::uint32_t>("shf.l.wrap.b32 %r7, %r0, %r1, %r2;", low, high, by)),
              ElementsAre(0xaabbbb11, 0xaaaabbbb, 0xaaabbbb1));
  EXPECT_THAT((evaluate<std::uint32_t>("shf.r.wrap.b32 %r7, %r0, %r1, %r2;", low, high, by)),
              ElementsAre(0xbb111122, 0x11112222, 0xb1111222));
  EXPECT_THAT((evaluate<std::uint32_t>("shf.l.clamp.b32 %r7, %r0, %r1, %r2;", low, high, by)),
              ElementsAre(0xaabbbb11, 0x11112222, 0x11112222));
  EXPECT_THAT((evaluate<std::uint32_t>("shf.r.clamp.b32 %r7, %r0, %r1, %r2;", low, high, by)),
              ElementsAre(0xbb111122, 0xaaaabbbb, 0xaaaabbbb));
}

TEST(BitInstructions, FieldsAreExtracted) {
  const Words a(8, 0xf0345678);
  const Words position{4, 28, 0, 40, 24, 31, 300, 4};
  const Words length{8, 4, 32, 4, 20, 1, 260, 0};  // the low bytes of 300 and 260 are 44 and 4
  EXPECT_THAT((evaluate<std::uint32_t>("bfe.u32 %r7, %r0, %r1, %r2;", a, position, length)),
              ElementsAre(0x67, 0xf, 0xf0345678, 0, 0xf0, 1, 0, 0));
  EXPECT_THAT((evaluate<std::uint32_t>("bfe.s32 %r7, %r0, %r1, %r2;", a, position, length)),
              ElementsAre(0x67, ~0U, 0xf0345678, ~0U, 0xfffffff0, ~0U, ~0U, 0));
  EXPECT_THAT((evaluate<std::uint64_t>("bfe.s64 %d7, %d0, %r1, %r2;", Longs{0x8000000000000000}, Words{60},
                                       Words{4})),
              ElementsAre(0xfffffffffffffff8));
}

TEST(BitInstructions, FieldsAreInserted) {
  const Words a(5, 0xabcd);
  const Words b(5, 0x11111111);
  const Words position{8, 28, 0, 32, 4};
  const Words length{8, 8, 32, 8, 0};
  EXPECT_THAT((evaluate<std::uint32_t>("bfi.b32 %r7, %r0, %r1, %r2, %r3;", a, b, position, length)),
              ElementsAre(0x1111cd11, 0xd1111111, 0xabcd, 0x11111111, 0x11111111));
  EXPECT_THAT(
      (evaluate<std::uint64_t>("bfi.b64 %d7, %d0, %d1, 32, 32;", Longs{0xffffffff12345678}, Longs{5})),
      ElementsAre(0x1234567800000005));
}

TEST(BitInstructions, BytesArePermutedWithSigns) {
  const Words a(4, 0x44332211);
  const Words b(4, 0x88776655);
  const Words selector{0x3210, 0x7654, 0x0f71, 0x8b3f};
  EXPECT_THAT((evaluate<std::uint32_t>("prmt.b32 %r7, %r0, %r1, %r2;", a, b, selector)),
              ElementsAre(0x44332211, 0x88776655, 0x11ff8822, 0x000044ff));
}

TEST(BitInstructions, BitsAreCounted) {
  const Words a{0, 1, 0x80000000, 0xf0f0};
  EXPECT_THAT((evaluate<std::uint32_t>("popc.b32 %r7, %r0;", a)), ElementsAre(0, 1, 1, 8));
  EXPECT_THAT((evaluate<std::uint32_t>("clz.b32 %r7, %r0;", a)), ElementsAre(32, 31, 0, 16));
  EXPECT_THAT((evaluate<std::uint32_t>("brev.b32 %r7, %r0;", a)), ElementsAre(0, 0x80000000, 1, 0x0f0f0000));
  EXPECT_THAT((evaluate<std::uint32_t>("popc.b64 %r7, %d0;", Longs{~0ULL, 5})), ElementsAre(64, 2));
  EXPECT_THAT((evaluate<std::uint32_t>("clz.b64 %r7, %d0;", Longs{0, 1})), ElementsAre(64, 63));
  EXPECT_THAT((evaluate<std::uint32_t>("bfind.u32 %r7, %r0;", a)), ElementsAre(~0U, 0, 31, 15));
  EXPECT_THAT((evaluate<std::uint32_t>("bfind.s32 %r7, %r0;", Words{0, ~0U, 0xfffffff0, 64})),
              ElementsAre(~0U, ~0U, 3, 6));
  EXPECT_THAT((evaluate<std::uint32_t>("bfind.shiftamt.u32 %r7, %r0;", a)), ElementsAre(~0U, 31, 0, 16));
}

}  // namespace
}  // namespace hcp::ptx
