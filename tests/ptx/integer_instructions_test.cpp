// Expected values are written out or computed in arithmetic that is wide enough.
#include <gmock/gmock.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/ptx/ptx_case.hpp"

namespace hcp::ptx {
namespace {

using testing::ElementsAre;

__extension__ using Wide = __int128;

const std::vector<std::int32_t> int_edges{0, 1, -1, 2, 7, -7, 65536, -65537, INT32_MAX, INT32_MIN};
const std::vector<std::int64_t> long_edges{0, 1, -1, 3, -3, INT64_C(1) << 32, INT64_MAX, INT64_MIN};

/// `expected` gets exact values; its low bits count.
template <typename T, typename Expected>
void expect_binary(const std::string& instruction, const std::vector<T>& edges, Expected expected) {
  const auto [a, b] = all_pairs(edges);
  const std::string name = sizeof(T) == 4 ? "r" : sizeof(T) == 8 ? "d" : "s";
  const auto operands = " %" + name + "7, %" + name + "0, %" + name + "1;";
  const auto result = evaluate<T>(instruction + operands, a, b);
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(result[i], static_cast<T>(expected(Wide{a[i]}, Wide{b[i]})))
        << instruction << " " << a[i] << ", " << b[i];
  }
}

TEST(IntegerInstructions, WrapAround) {
  expect_binary("add.s32", int_edges, [](Wide a, Wide b) { return a + b; });
  expect_binary("add.u64", long_edges, [](Wide a, Wide b) { return a + b; });
  expect_binary("sub.s32", int_edges, [](Wide a, Wide b) { return a - b; });
  expect_binary("sub.s64", long_edges, [](Wide a, Wide b) { return a - b; });
  expect_binary("mul.lo.s32", int_edges, [](Wide a, Wide b) { return a * b; });
  expect_binary<std::uint16_t>("mul.lo.u16", {0, 1, 255, 65535}, [](Wide a, Wide b) { return a * b; });
  expect_binary<std::int16_t>("add.s16", {0, 1, 32767, -32768}, [](Wide a, Wide b) { return a + b; });
}

TEST(IntegerInstructions, UpperHalfOfAProduct) {
  expect_binary("mul.hi.s32", int_edges, [](Wide a, Wide b) { return (a * b) >> 32; });
  expect_binary("mul.hi.s64", long_edges, [](Wide a, Wide b) { return (a * b) >> 64; });
  EXPECT_THAT(
      (evaluate<std::uint32_t>("mul.hi.u32 %r7, %r0, %r1;", Column<std::uint32_t>{0xffffffff, 0x80000000},
                               Column<std::uint32_t>{0xffffffff, 2})),
      ElementsAre(0xfffffffe, 1));
  EXPECT_THAT((evaluate<std::uint64_t>("mul.hi.u64 %d7, %d0, %d1;", Column<std::uint64_t>{~0ULL},
                                       Column<std::uint64_t>{~0ULL})),
              ElementsAre(~0ULL - 1));
}

TEST(IntegerInstructions, WideProducts) {
  const Column<std::int32_t> a{-1, INT32_MIN, 7};
  const Column<std::int32_t> b{5, INT32_MIN, -3};
  EXPECT_THAT((evaluate<std::int64_t>("mul.wide.s32 %d7, %r0, %r1;", a, b)),
              ElementsAre(-5, INT64_C(1) << 62, -21));
  EXPECT_THAT((evaluate<std::int64_t>("mul.wide.u32 %d7, %r0, %r1;", a, b)),
              ElementsAre(INT64_C(5) * 0xffffffff, INT64_C(1) << 62, INT64_C(7) * 0xfffffffd));
  EXPECT_THAT(
      (evaluate<std::int64_t>("mad.wide.s32 %d7, %r0, %r1, %d2;", a, b, Column<std::int64_t>{100, 1, -1})),
      ElementsAre(95, (INT64_C(1) << 62) + 1, -22));
  EXPECT_THAT((evaluate<std::int32_t>("mul.wide.s16 %r7, %s0, %s1;", Column<std::int16_t>{-32768},
                                      Column<std::int16_t>{-32768})),
              ElementsAre(1 << 30));
}

TEST(IntegerInstructions, MultiplyAdd) {
  const Column<std::int32_t> a{3, INT32_MAX};
  EXPECT_THAT((evaluate<std::int32_t>("mad.lo.s32 %r7, %r0, %r1, %r2;", a, Column<std::int32_t>{-4, 2},
                                      Column<std::int32_t>{5, 1})),
              ElementsAre(-7, -1));
  EXPECT_THAT((evaluate<std::int32_t>("mad.hi.s32 %r7, %r0, %r1, %r2;", a, Column<std::int32_t>{-4, 4},
                                      Column<std::int32_t>{5, 1})),
              ElementsAre(4, 2));
}

TEST(IntegerInstructions, DivisionTowardsZero) {
  const Column<std::int32_t> a{7, -7, 7, INT32_MIN, 5};
  const Column<std::int32_t> b{2, 2, -2, -1, 0};
  EXPECT_THAT((evaluate<std::int32_t>("div.s32 %r7, %r0, %r1;", a, b)),
              ElementsAre(3, -3, -3, INT32_MIN, -1));
  EXPECT_THAT((evaluate<std::int32_t>("rem.s32 %r7, %r0, %r1;", a, b)), ElementsAre(1, -1, 1, 0, 5));
  EXPECT_THAT((evaluate<std::uint32_t>("div.u32 %r7, %r0, 3;", Column<std::uint32_t>{0xffffffff, 2})),
              ElementsAre(0x55555555, 0));
  EXPECT_THAT((evaluate<std::int64_t>("div.s64 %d7, %d0, %d1;", Column<std::int64_t>{INT64_MIN, -9},
                                      Column<std::int64_t>{-1, 4})),
              ElementsAre(INT64_MIN, -2));
}

TEST(IntegerInstructions, OrderAndSign) {
  const Column<std::int32_t> a{-1, 1, INT32_MIN};
  const Column<std::int32_t> b{1, -1, INT32_MAX};
  EXPECT_THAT((evaluate<std::int32_t>("min.s32 %r7, %r0, %r1;", a, b)), ElementsAre(-1, -1, INT32_MIN));
  EXPECT_THAT((evaluate<std::int32_t>("min.u32 %r7, %r0, %r1;", a, b)), ElementsAre(1, 1, INT32_MAX));
  EXPECT_THAT((evaluate<std::int32_t>("max.s32 %r7, %r0, %r1;", a, b)), ElementsAre(1, 1, INT32_MAX));
  EXPECT_THAT((evaluate<std::int32_t>("max.u32 %r7, %r0, %r1;", a, b)), ElementsAre(-1, -1, INT32_MIN));
  EXPECT_THAT((evaluate<std::int32_t>("abs.s32 %r7, %r0;", a)), ElementsAre(1, 1, INT32_MIN));
  EXPECT_THAT((evaluate<std::int32_t>("neg.s32 %r7, %r0;", a)), ElementsAre(1, -1, INT32_MIN));
}

TEST(IntegerInstructions, LanesWithoutTheGuardKeepTheirValue) {
  EXPECT_THAT((evaluate<std::int32_t>("setp.gt.s32 %p0, %r0, 0; mov.u32 %r7, 100; @%p0 add.s32 %r7, %r7, %r0;"
                                      "@!%p0 sub.s32 %r7, %r7, 1;",
                                      Column<std::int32_t>{-5, 5, 0, 1})),
              ElementsAre(99, 105, 99, 101));
}

}  // namespace
}  // namespace hcp::ptx
