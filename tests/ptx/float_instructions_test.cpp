// Expected values come from double or long double arithmetic, or are written out.
#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/ptx/ptx_case.hpp"

namespace hcp::ptx {
namespace {

using Floats = Column<float>;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float smallest = std::numeric_limits<float>::denorm_min();
constexpr float tiny = std::numeric_limits<float>::min();

const std::vector<float> edges{0.0F,     -0.0F,     1.0F,     -1.5F,     3.0F, 1e-20F, -1e20F, tiny,
                               smallest, -smallest, infinity, -infinity, nan,  1e38F,  0.1F};

bool is_same(float a, float b) {
  return std::isnan(a) ? std::isnan(b) : std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

float flushed(float x) {
  return x != 0.0F && std::fabs(x) < tiny ? std::copysign(0.0F, x) : x;
}

template <typename Expected>
void expect_binary(const std::string& instruction, Expected expected) {
  const auto [a, b] = all_pairs(edges);
  const auto result = evaluate<float>(instruction + " %r7, %r0, %r1;", a, b);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float wanted = expected(a[i], b[i]);
    EXPECT_TRUE(is_same(result[i], wanted))
        << instruction << " " << a[i] << ", " << b[i] << ": " << result[i] << ", not " << wanted;
  }
}

template <typename Expected>
void expect_unary(const std::string& instruction, Expected expected, float tolerance = 0.0F) {
  const auto result = evaluate<float>(instruction + " %r7, %r0;", edges);
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const float wanted = expected(edges[i]);
    EXPECT_TRUE(is_same(result[i], wanted) || std::fabs(result[i] - wanted) <= tolerance * std::fabs(wanted))
        << instruction << " " << edges[i] << ": " << result[i] << ", not " << wanted;
  }
}

// The double result of one operation on floats, rounded again, is the float result.
float rounded(double x) {
  return static_cast<float>(x);
}

TEST(FloatInstructions, RoundedToNearest) {
  expect_binary("add.f32", [](double a, double b) { return rounded(a + b); });
  expect_binary("sub.f32", [](double a, double b) { return rounded(a - b); });
  expect_binary("mul.f32", [](double a, double b) { return rounded(a * b); });
  expect_binary("div.rn.f32", [](double a, double b) { return rounded(a / b); });
  expect_binary("add.rn.f32", [](double a, double b) { return rounded(a + b); });
}

TEST(FloatInstructions, SubnormalsAreFlushed) {
  expect_binary("add.ftz.f32", [](float a, float b) { return flushed(flushed(a) + flushed(b)); });
  expect_binary("mul.ftz.f32", [](float a, float b) { return flushed(flushed(a) * flushed(b)); });
  expect_binary("div.approx.ftz.f32", [](float a, float b) { return flushed(flushed(a) / flushed(b)); });
  expect_unary("abs.ftz.f32", [](float a) { return std::fabs(flushed(a)); });
}

TEST(FloatInstructions, SaturationTakesNanToZero) {
  const auto into_unit = [](float x) { return std::isnan(x) ? 0.0F : std::fmin(std::fmax(x, 0.0F), 1.0F); };
  const auto [a, b] = all_pairs(edges);
  const auto result = evaluate<float>("add.sat.f32 %r7, %r0, %r1;", a, b);
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(result[i], into_unit(a[i] + b[i])) << a[i] << " + " << b[i];
  }
}

TEST(FloatInstructions, FusedMultiplyAddRoundsOnce) {
  std::mt19937 random{5};
  std::normal_distribution<float> normal;
  Floats a(256);
  Floats b(256);
  Floats c(256);
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = normal(random);
    b[i] = normal(random);
    c[i] = -a[i] * b[i] * (i % 2 == 0 ? 1.0F : 1e-6F);  // cancels: shows a product that was rounded
  }
  const auto result = evaluate<float>("fma.rn.f32 %r7, %r0, %r1, %r2;", a, b, c);
  const auto down = evaluate<float>("fma.rm.f32 %r7, %r0, %r1, %r2;", a, b, c);
  const auto up = evaluate<float>("fma.rp.f32 %r7, %r0, %r1, %r2;", a, b, c);
  const auto zero = evaluate<float>("fma.rz.f32 %r7, %r0, %r1, %r2;", a, b, c);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const long double exact =
        static_cast<long double>(a[i]) * b[i] + c[i];  // 64 bits of fraction: exact here
    EXPECT_EQ(result[i], static_cast<float>(exact));
    EXPECT_LE(down[i], exact);
    EXPECT_GE(up[i], exact);
    EXPECT_LE(std::nextafter(down[i], infinity), exact == down[i] ? infinity : up[i]);
    EXPECT_EQ(zero[i], exact > 0 ? down[i] : up[i]);
  }
}

TEST(FloatInstructions, MinimumAndMaximumPreferNumbers) {
  expect_binary("min.f32", [](float a, float b) {
    if (std::isnan(a) || std::isnan(b)) {
      return std::isnan(a) ? b : a;
    }
    return a == b ? (std::signbit(a) ? a : b) : std::fmin(a, b);
  });
  expect_binary("max.f32", [](float a, float b) {
    if (std::isnan(a) || std::isnan(b)) {
      return std::isnan(a) ? b : a;
    }
    return a == b ? (std::signbit(a) ? b : a) : std::fmax(a, b);
  });
  expect_binary("max.NaN.f32", [](float a, float b) {
    return std::isnan(a) || std::isnan(b) ? nan : a == b ? (std::signbit(a) ? b : a) : std::fmax(a, b);
  });
}

TEST(FloatInstructions, SignsAndRoots) {
  expect_unary("neg.f32", [](float a) { return -a; });
  expect_unary("abs.f32", [](float a) { return std::fabs(a); });
  expect_unary("sqrt.rn.f32", [](float a) { return rounded(std::sqrt(static_cast<double>(a))); });
  expect_unary("rcp.rn.f32", [](float a) { return rounded(1.0 / static_cast<double>(a)); });
  expect_unary(
      "rsqrt.approx.f32", [](float a) { return rounded(1.0 / std::sqrt(static_cast<double>(a))); }, 2e-7F);
  expect_binary("copysign.f32", [](float a, float b) { return std::copysign(b, a); });
}

TEST(FloatInstructions, ExponentialsAndLogarithms) {
  expect_unary(
      "ex2.approx.ftz.f32",
      [](float a) { return flushed(rounded(std::exp2(static_cast<double>(flushed(a))))); }, 3e-7F);
  expect_unary(
      "lg2.approx.ftz.f32", [](float a) { return rounded(std::log2(static_cast<double>(flushed(a)))); },
      3e-7F);
  expect_unary(
      "tanh.approx.f32", [](float a) { return rounded(std::tanh(static_cast<double>(a))); }, 3e-7F);
}

TEST(FloatInstructions, Doubles) {
  const Column<double> a{1.0, -2.5, 1e300};
  const Column<double> b{3.0, 0.5, 1e300};
  EXPECT_THAT((evaluate<double>("add.f64 %d7, %d0, %d1;", a, b)), testing::ElementsAre(4.0, -2.0, 2e300));
  EXPECT_THAT((evaluate<double>("fma.rn.f64 %d7, %d0, %d1, %d0;", a, b)),
              testing::ElementsAre(4.0, -3.75, std::numeric_limits<double>::infinity()));
  EXPECT_THAT((evaluate<double>("div.rn.f64 %d7, %d0, %d1;", a, b)),
              testing::ElementsAre(1.0 / 3.0, -5.0, 1.0));
  EXPECT_THAT((evaluate<double>("max.f64 %d7, %d0, 0d4000000000000000;", a)),
              testing::ElementsAre(2.0, 2.0, 1e300));
  const auto reciprocal = evaluate<double>("rcp.approx.ftz.f64 %d7, %d0;", a);
  EXPECT_NEAR(reciprocal[1], -0.4, 1e-6);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(reciprocal[1]) & 0xffffffff, 0U);
}

}  // namespace
}  // namespace hcp::ptx
