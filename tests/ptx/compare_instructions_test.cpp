#include <gmock/gmock.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>

#include "tests/ptx/ptx_case.hpp"

namespace hcp::ptx {
namespace {

using testing::ElementsAre;
using Words = Column<std::uint32_t>;

template <typename T>
void expect_comparison(const std::string& instruction, const std::vector<T>& values,
                       const std::function<bool(T, T)>& expected) {
  const auto [a, b] = all_pairs(values);
  const std::string name = sizeof(T) == 8 ? "%d" : "%r";
  const auto result = evaluate<std::uint32_t>(
      instruction + " %p0, " + name + "0, " + name + "1; selp.u32 %r7, 1, 0, %p0;", a, b);
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(result[i] != 0, expected(a[i], b[i])) << instruction << " " << a[i] << ", " << b[i];
  }
}

TEST(Compare, Floats) {
  const std::vector<float> values{0.0F,
                                  -0.0F,
                                  1.0F,
                                  -1.0F,
                                  std::numeric_limits<float>::infinity(),
                                  -std::numeric_limits<float>::infinity(),
                                  std::numeric_limits<float>::quiet_NaN()};
  const auto no_nan = [](float a, float b) { return !std::isnan(a) && !std::isnan(b); };
  const std::map<std::string, std::function<bool(float, float)>> comparisons{
      {"eq", std::equal_to<>{}},   {"ne", std::not_equal_to<>{}}, {"lt", std::less<>{}},
      {"le", std::less_equal<>{}}, {"gt", std::greater<>{}},      {"ge", std::greater_equal<>{}}};
  for (const auto& [name, compare] : comparisons) {
    expect_comparison<float>("setp." + name + ".f32", values,
                             [&](float a, float b) { return no_nan(a, b) && compare(a, b); });
    expect_comparison<float>("setp." + name + "u.f32", values,
                             [&](float a, float b) { return !no_nan(a, b) || compare(a, b); });
  }
  expect_comparison<float>("setp.num.f32", values, no_nan);
  expect_comparison<float>("setp.nan.f32", values, [&](float a, float b) { return !no_nan(a, b); });
  expect_comparison<float>("setp.gt.ftz.f32", {0.0F, 1e-40F, 1.0F},
                           [](float a, float b) { return a == 1 && b < 1; });
}

TEST(Compare, IntegersBySign) {
  const std::vector<std::int32_t> values{0, 1, -1, INT32_MIN, INT32_MAX};
  const auto as_unsigned = [](std::int32_t x) { return static_cast<std::uint32_t>(x); };
  expect_comparison<std::int32_t>("setp.lt.s32", values, std::less<>{});
  expect_comparison<std::int32_t>("setp.ge.s32", values, std::greater_equal<>{});
  expect_comparison<std::int32_t>("setp.ne.b32", values, std::not_equal_to<>{});
  expect_comparison<std::int32_t>("setp.lt.u32", values,
                                  [&](auto a, auto b) { return as_unsigned(a) < as_unsigned(b); });
  expect_comparison<std::int32_t>("setp.hi.u32", values,
                                  [&](auto a, auto b) { return as_unsigned(a) > as_unsigned(b); });
  expect_comparison<std::int64_t>("setp.le.s64", {0, -1, INT64_MIN, INT64_MAX}, std::less_equal<>{});
}

TEST(Compare, HalvesByValue) {
  const auto compare = [](const std::string& type, std::uint16_t a, std::uint16_t b) {
    return evaluate<std::uint32_t>("setp.gt." + type + " %p0, %s0, %s1; selp.u32 %r7, 1, 0, %p0;",
                                   Column<std::uint16_t>{a}, Column<std::uint16_t>{b})[0];
  };
  EXPECT_EQ(compare("f16", 0x3c00, 0xbc00), 1U);
  EXPECT_EQ(compare("f16", 0xbc00, 0x3c00), 0U);
  EXPECT_EQ(compare("bf16", 0x0000, 0x8000), 0U);
}

TEST(Compare, CombinesWithAPredicate) {
  const Words a{1, 1, 0, 0};
  const Words b{1, 0, 1, 0};
  const std::string setup = "setp.ne.u32 %p1, %r1, 0; setp.ne";
  const std::string number = "; selp.u32 %r6, 2, 0, %p0; selp.u32 %r7, 1, 0, %p2; add.u32 %r7, %r7, %r6;";
  EXPECT_THAT((evaluate<std::uint32_t>(setup + ".and.u32 %p0|%p2, %r0, 0, %p1" + number, a, b)),
              ElementsAre(2, 0, 1, 0));
  EXPECT_THAT((evaluate<std::uint32_t>(setup + ".or.u32 %p0|%p2, %r0, 0, %p1" + number, a, b)),
              ElementsAre(3, 2, 3, 1));
  EXPECT_THAT((evaluate<std::uint32_t>(setup + ".xor.u32 %p0|%p2, %r0, 0, !%p1" + number, a, b)),
              ElementsAre(2, 1, 1, 2));
}

TEST(Compare, PredicateLogic) {
  const Words a{1, 1, 0, 0};
  const Words b{1, 0, 1, 0};
  const auto result = [&](const std::string& operation) {
    return evaluate<std::uint32_t>(
        "setp.ne.u32 %p1, %r0, 0; setp.ne.u32 %p2, %r1, 0; " + operation + " selp.u32 %r7, 1, 0, %p0;", a, b);
  };
  EXPECT_THAT(result("and.pred %p0, %p1, %p2;"), ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(result("or.pred %p0, %p1, %p2;"), ElementsAre(1, 1, 1, 0));
  EXPECT_THAT(result("xor.pred %p0, %p1, %p2;"), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(result("not.pred %p0, %p1;"), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(result("mov.pred %p0, %p2;"), ElementsAre(1, 0, 1, 0));
  EXPECT_THAT(result("mov.pred %p0, 1;"), ElementsAre(1, 1, 1, 1));
}

TEST(Compare, SelectsBySign) {
  const Column<float> c{0.0F, -0.0F, -1.0F, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_THAT((evaluate<std::uint32_t>("slct.u32.f32 %r7, 5, 6, %r0;", c)), ElementsAre(5, 5, 6, 6));
  EXPECT_THAT((evaluate<std::uint32_t>("slct.u32.s32 %r7, 5, 6, %r0;", Words{0, 7, 0xffffffff})),
              ElementsAre(5, 5, 6));
}

}  // namespace
}  // namespace hcp::ptx
