// cvt, mov with lists
#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tests/ptx/ptx_case.hpp"

namespace hcp::ptx {
namespace {

using testing::ElementsAre;
using Words = Column<std::uint32_t>;
using Floats = Column<float>;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

TEST(Convert, IntegersKeepTheLowBitsAndTheSign) {
  const Words a{0xffffffff, 0x80, 0x12345678};
  EXPECT_THAT((evaluate<std::uint64_t>("cvt.s64.s32 %d7, %r0;", a)), ElementsAre(~0ULL, 0x80, 0x12345678));
  EXPECT_THAT((evaluate<std::uint64_t>("cvt.u64.u32 %d7, %r0;", a)),
              ElementsAre(0xffffffff, 0x80, 0x12345678));
  EXPECT_THAT((evaluate<std::uint32_t>("cvt.s32.s8 %r7, %r0;", a)),
              ElementsAre(0xffffffff, 0xffffff80, 0x78));
  EXPECT_THAT((evaluate<std::uint32_t>("cvt.u32.u8 %r7, %r0;", a)), ElementsAre(0xff, 0x80, 0x78));
  EXPECT_THAT((evaluate<std::uint32_t>("cvt.s32.s16 %r7, %r0;", a)), ElementsAre(0xffffffff, 0x80, 0x5678));
  EXPECT_THAT((evaluate<std::uint16_t>("cvt.u16.u32 %s7, %r0;", a)), ElementsAre(0xffff, 0x80, 0x5678));
  EXPECT_THAT((evaluate<std::uint32_t>("cvt.u32.u64 %r7, %d0;", Column<std::uint64_t>{0x1122334455667788})),
              ElementsAre(0x55667788));
  EXPECT_THAT((evaluate<std::uint32_t>("cvt.sat.u8.s32 %r7, %r0;", Words{0xffffffff, 300, 7})),
              ElementsAre(0, 255, 7));
  EXPECT_THAT((evaluate<std::uint32_t>("cvt.sat.s8.s32 %r7, %r0;", Words{0xffffff00, 300, 7})),
              ElementsAre(0xffffff80, 127, 7));
}

TEST(Convert, IntegersToFloatsRoundToNearest) {
  EXPECT_THAT((evaluate<float>("cvt.rn.f32.s32 %r7, %r0;", Words{0xffffffff, 16777217, 16777219})),
              ElementsAre(-1.0F, 16777216.0F, 16777220.0F));
  EXPECT_THAT((evaluate<float>("cvt.rn.f32.u32 %r7, %r0;", Words{0xffffffff})), ElementsAre(4294967296.0F));
  EXPECT_THAT((evaluate<float>("cvt.rn.f32.u64 %r7, %d0;", Column<std::uint64_t>{~0ULL})),
              ElementsAre(18446744073709551616.0F));
  EXPECT_THAT((evaluate<double>("cvt.rn.f64.s32 %d7, %r0;", Words{0x80000000})), ElementsAre(-2147483648.0));
  EXPECT_THAT((evaluate<std::uint16_t>("cvt.rn.f16.s32 %s7, %r0;", Words{2049, 70000, 0xffffffff})),
              ElementsAre(0x6800, 0x7c00, 0xbc00));
}

TEST(Convert, FloatsToIntegersSaturate) {
  const Floats a{2.5F, -2.5F, 3.7F, infinity, -infinity, nan, 3e9F, -0.5F};
  EXPECT_THAT((evaluate<std::int32_t>("cvt.rni.s32.f32 %r7, %r0;", a)),
              ElementsAre(2, -2, 4, INT32_MAX, INT32_MIN, 0, INT32_MAX, 0));
  EXPECT_THAT((evaluate<std::int32_t>("cvt.rzi.s32.f32 %r7, %r0;", a)),
              ElementsAre(2, -2, 3, INT32_MAX, INT32_MIN, 0, INT32_MAX, 0));
  EXPECT_THAT((evaluate<std::int32_t>("cvt.rmi.s32.f32 %r7, %r0;", a)),
              ElementsAre(2, -3, 3, INT32_MAX, INT32_MIN, 0, INT32_MAX, -1));
  EXPECT_THAT((evaluate<std::int32_t>("cvt.rpi.s32.f32 %r7, %r0;", a)),
              ElementsAre(3, -2, 4, INT32_MAX, INT32_MIN, 0, INT32_MAX, 0));
  EXPECT_THAT((evaluate<std::uint32_t>("cvt.rzi.u32.f32 %r7, %r0;", a)),
              ElementsAre(2, 0, 3, ~0U, 0, 0, 3000000000U, 0));
  EXPECT_THAT((evaluate<std::int64_t>("cvt.rzi.s64.f32 %d7, %r0;", Floats{nan, 1e30F, -7.9F})),
              ElementsAre(INT64_MIN, INT64_MAX, -7));
}

TEST(Convert, FloatsToWholeFloats) {
  const Floats a{2.5F, -2.5F, 0.1F, -0.1F};
  EXPECT_THAT((evaluate<float>("cvt.rni.f32.f32 %r7, %r0;", a)), ElementsAre(2.0F, -2.0F, 0.0F, -0.0F));
  EXPECT_THAT((evaluate<float>("cvt.rpi.f32.f32 %r7, %r0;", a)), ElementsAre(3.0F, -2.0F, 1.0F, -0.0F));
  EXPECT_THAT((evaluate<float>("cvt.rmi.f32.f32 %r7, %r0;", a)), ElementsAre(2.0F, -3.0F, 0.0F, -1.0F));
  EXPECT_THAT((evaluate<float>("cvt.sat.f32.f32 %r7, %r0;", Floats{nan, 2.0F, -1.0F, 0.25F})),
              ElementsAre(0.0F, 1.0F, 0.0F, 0.25F));
}

TEST(Convert, BetweenFloatAndDouble) {
  EXPECT_THAT((evaluate<double>("cvt.f64.f32 %d7, %r0;", Floats{0.1F})),
              ElementsAre(static_cast<double>(0.1F)));
  const Column<double> a{1.0 + 1e-9, -1.0 - 1e-9};
  const float above = std::nextafter(1.0F, 2.0F);
  EXPECT_THAT((evaluate<float>("cvt.rn.f32.f64 %r7, %d0;", a)), ElementsAre(1.0F, -1.0F));
  EXPECT_THAT((evaluate<float>("cvt.rp.f32.f64 %r7, %d0;", a)), ElementsAre(above, -1.0F));
  EXPECT_THAT((evaluate<float>("cvt.rm.f32.f64 %r7, %d0;", a)), ElementsAre(1.0F, -above));
  EXPECT_THAT((evaluate<float>("cvt.rz.f32.f64 %r7, %d0;", a)), ElementsAre(1.0F, -1.0F));
  EXPECT_THAT((evaluate<float>("cvt.rn.ftz.f32.f64 %r7, %d0;", Column<double>{1e-40})), ElementsAre(0.0F));
}

TEST(Convert, ToTf32TiesAwayFromZero) {
  EXPECT_THAT((evaluate<std::uint32_t>("cvt.rna.tf32.f32 %r7, %r0;",
                                       Words{0x3f800fff, 0x3f801000, 0xbf803000, 0x7f800000})),
              ElementsAre(0x3f800000, 0x3f802000, 0xbf804000, 0x7f800000));
}

TEST(Move, PacksAndUnpacks) {
  EXPECT_THAT((evaluate<std::uint64_t>("mov.b64 %d7, {%r0, %r1};", Words{1}, Words{2})),
              ElementsAre(0x200000001));
  EXPECT_THAT((evaluate<std::uint32_t>("mov.b64 {%r6, %r7}, %d0; sub.u32 %r7, %r7, %r6;",
                                       Column<std::uint64_t>{0x900000004})),
              ElementsAre(5));
  EXPECT_THAT(
      (evaluate<std::uint32_t>("mov.b32 {%s0, %s1}, %r0; mov.b32 %r7, {%s1, %s0};", Words{0x12345678})),
      ElementsAre(0x56781234));
  EXPECT_THAT(
      (evaluate<std::uint64_t>("mov.b64 {%s0, %s1, %s2, %s3}, %d0; mov.b64 %d7, {%s3, %s2, %s1, %s0};",
                               Column<std::uint64_t>{0x1111222233334444})),
      ElementsAre(0x4444333322221111));
  EXPECT_THAT((evaluate<std::uint32_t>("{ .reg .b32 %low; mov.b64 {%low, %r7}, %d0; }",
                                       Column<std::uint64_t>{0x700000003})),
              ElementsAre(7));
}

}  // namespace
}  // namespace hcp::ptx
