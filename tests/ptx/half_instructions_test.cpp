// The 16-bit formats, against values found by search in the table of all their values.
#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/ptx/ptx_case.hpp"

namespace hcp::ptx {
namespace {

using Halves = Column<std::uint16_t>;

/// A 16-bit format by its definition: sign, exponent, fraction.
struct Format {
  int exponent_bits;
  int fraction_bits;

  [[nodiscard]] int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  [[nodiscard]] std::uint32_t infinity() const { return ((1U << exponent_bits) - 1) << fraction_bits; }

  [[nodiscard]] long double value(std::uint32_t bits) const {
    const std::uint32_t magnitude = bits & 0x7fff;
    const int exponent = static_cast<int>(magnitude >> fraction_bits);
    const auto fraction = static_cast<long double>(magnitude & ((1U << fraction_bits) - 1));
    const long double unit = std::ldexp(1.0L, -fraction_bits);
    long double result = exponent == 0 ? std::ldexp(fraction * unit, 1 - bias())
                                       : std::ldexp(1.0L + fraction * unit, exponent - bias());
    if (magnitude == infinity()) {
      result = std::numeric_limits<long double>::infinity();
    } else if (magnitude > infinity()) {
      result = std::numeric_limits<long double>::quiet_NaN();
    }
    return (bits & 0x8000) != 0 ? -result : result;
  }

  /// To nearest even, by looking at the neighbours.
  [[nodiscard]] std::uint32_t nearest(long double x) const {
    if (std::isnan(x)) {
      return 0x7fff;
    }
    const std::uint32_t sign = std::signbit(x) ? 0x8000U : 0U;
    const long double magnitude = std::fabs(x);
    std::uint32_t low = 0;  // the greatest finite value that is not above
    std::uint32_t high = infinity() - 1;
    while (low < high) {
      const std::uint32_t middle = (low + high + 1) / 2;
      (value(middle) <= magnitude ? low : high) = value(middle) <= magnitude ? middle : middle - 1;
    }
    const bool is_last = low == infinity() - 1;
    const long double above = is_last ? 2 * value(low) - value(low - 1) : value(low + 1);
    const long double to_low = magnitude - value(low);
    const long double to_high = above - magnitude;
    const bool up = to_high < to_low || (to_high == to_low && (low & 1) != 0);
    return sign | (up ? low + 1 : low);
  }
};

constexpr Format f16{5, 10};
constexpr Format bf16{8, 7};

Halves random_halves(unsigned seed, const Format& format) {
  std::mt19937 random{seed};
  Halves halves{
      0,     0x8000, 1, 0x8001, 0x03ff, 0x0400, 0x3c00, 0x7bff, static_cast<std::uint16_t>(format.infinity()),
      0x7fff};
  while (halves.size() < 512) {
    halves.push_back(static_cast<std::uint16_t>(random()));
  }
  return halves;
}

template <typename Expected>
void expect_ternary(const std::string& instruction, const Format& format, Expected expected) {
  const Halves a = random_halves(1, format);
  Halves b = random_halves(2, format);
  Halves c = random_halves(3, format);
  std::ranges::rotate(b, b.begin() + 3);
  std::ranges::rotate(c, c.begin() + 5);
  const auto result = evaluate<std::uint16_t>(instruction, a, b, c);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const long double exact = expected(format.value(a[i]), format.value(b[i]), format.value(c[i]));
    const std::uint32_t wanted = format.nearest(exact);
    const bool both_nan = std::isnan(exact) && std::isnan(format.value(result[i]));
    EXPECT_TRUE(both_nan || result[i] == wanted) << instruction << " " << a[i] << " " << b[i] << " " << c[i]
                                                 << ": " << result[i] << ", not " << wanted;
  }
}

TEST(HalfInstructions, ArithmeticRoundsOnce) {
  using Real = long double;
  const auto sum = [](Real a, Real b, Real) { return a + b; };
  const auto product = [](Real a, Real b, Real) { return a * b; };
  expect_ternary("add.f16 %s7, %s0, %s1;", f16, sum);
  expect_ternary("sub.f16 %s7, %s0, %s1;", f16, [](Real a, Real b, Real) { return a - b; });
  expect_ternary("mul.f16 %s7, %s0, %s1;", f16, product);
  expect_ternary("add.rn.bf16 %s7, %s0, %s1;", bf16, sum);
  expect_ternary("mul.bf16 %s7, %s0, %s1;", bf16, product);
  expect_ternary("fma.rn.f16 %s7, %s0, %s1, %s2;", f16, [](Real a, Real b, Real c) { return a * b + c; });
}

TEST(HalfInstructions, FusedMultiplyAddBreaksTies) {
  // 1 + 2^-8 lies between two bf16 values and goes to the even one; the smallest step more does not.
  const Halves a{0x3b80, 0x3b80};  // 2^-8
  const Halves b{0x3f80, 0x3f81};  // 1, 1 + 2^-7
  EXPECT_THAT((evaluate<std::uint16_t>("fma.rn.bf16 %s7, %s0, %s1, %s2;", a, b, Halves{0x3f80, 0x3f80})),
              testing::ElementsAre(0x3f80, 0x3f81));
}

TEST(HalfInstructions, PairsAreTwoHalves) {
  const Halves a = random_halves(7, f16);
  const Halves b = random_halves(8, f16);
  Column<std::uint32_t> pairs_a;
  Column<std::uint32_t> pairs_b;
  for (std::size_t i = 0; i < a.size(); i += 2) {
    pairs_a.push_back(a[i] | static_cast<std::uint32_t>(a[i + 1]) << 16);
    pairs_b.push_back(b[i] | static_cast<std::uint32_t>(b[i + 1]) << 16);
  }
  for (const std::string operation : {"add", "sub", "mul", "min", "max"}) {
    const auto single = evaluate<std::uint16_t>(operation + ".f16 %s7, %s0, %s1;", a, b);
    const auto packed = evaluate<std::uint32_t>(operation + ".f16x2 %r7, %r0, %r1;", pairs_a, pairs_b);
    for (std::size_t i = 0; i < packed.size(); ++i) {
      EXPECT_EQ(packed[i], single[2 * i] | static_cast<std::uint32_t>(single[2 * i + 1]) << 16) << operation;
    }
  }
}

TEST(HalfInstructions, MinimumPrefersNumbersAndNegativeZero) {
  const Halves a{0x7e00, 0x8000, 0x0000, 0xfc00, 0x3c00};
  const Halves b{0x3c00, 0x0000, 0x8000, 0x7c00, 0x7e00};
  EXPECT_THAT((evaluate<std::uint16_t>("min.f16 %s7, %s0, %s1;", a, b)),
              testing::ElementsAre(0x3c00, 0x8000, 0x8000, 0xfc00, 0x3c00));
  EXPECT_THAT((evaluate<std::uint16_t>("max.NaN.f16 %s7, %s0, %s1;", a, b)),
              testing::ElementsAre(0x7fff, 0x0000, 0x0000, 0x7c00, 0x7fff));
  EXPECT_THAT((evaluate<std::uint16_t>("neg.bf16 %s7, %s0;", Halves{0x3f80, 0x8000})),
              testing::ElementsAre(0xbf80, 0x0000));
  EXPECT_THAT((evaluate<std::uint16_t>("fma.rn.relu.f16 %s7, %s0, %s1, %s1;", Halves{0xbc00, 0x3c00},
                                       Halves{0x4000, 0x4000})),
              testing::ElementsAre(0x0000, 0x4400));
}

TEST(HalfConversions, EveryValueWidens) {
  Halves all;
  for (std::uint32_t bits = 0; bits < 65536; bits += 64) {
    all.push_back(static_cast<std::uint16_t>(bits + (bits / 64) % 64));
  }
  const auto from_f16 = evaluate<float>("cvt.f32.f16 %r7, %s0;", all);
  const auto from_bf16 = evaluate<float>("cvt.f32.bf16 %r7, %s0;", all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_TRUE(std::isnan(f16.value(all[i])) ? std::isnan(from_f16[i]) : from_f16[i] == f16.value(all[i]));
    EXPECT_TRUE(std::isnan(bf16.value(all[i])) ? std::isnan(from_bf16[i])
                                               : from_bf16[i] == bf16.value(all[i]));
  }
}

TEST(HalfConversions, NarrowToNearestEven) {
  std::mt19937 random{11};
  Column<float> values{0.0F,
                       -0.0F,
                       65504.0F,
                       65519.9F,
                       65520.0F,
                       1e-8F,
                       2.98023224e-8F,
                       3e-8F,
                       6e-8F,
                       1e-40F,
                       3.4e38F,
                       std::numeric_limits<float>::infinity(),
                       -std::numeric_limits<float>::infinity(),
                       std::numeric_limits<float>::quiet_NaN(),
                       1.00390625F,
                       1.01171875F};
  while (values.size() < 512) {
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
    values.push_back(std::ldexp(static_cast<float>(random() % 4096), static_cast<int>(random() % 44) - 36));
  }
  const auto to_f16 = evaluate<std::uint16_t>("cvt.rn.f16.f32 %s7, %r0;", values);
  const auto to_bf16 = evaluate<std::uint16_t>("cvt.rn.bf16.f32 %s7, %r0;", values);
  const auto f16_pair = evaluate<std::uint32_t>("cvt.rn.f16x2.f32 %r7, %r0, 0f3F800000;", values);
  const auto bf16_pair = evaluate<std::uint32_t>("cvt.rn.bf16x2.f32 %r7, 0f3F800000, %r0;", values);
  const auto truncated = evaluate<std::uint16_t>("cvt.rz.bf16.f32 %s7, %r0;", values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(to_f16[i], f16.nearest(values[i])) << values[i];
    EXPECT_EQ(to_bf16[i], bf16.nearest(values[i])) << values[i];
    EXPECT_EQ(f16_pair[i], f16.nearest(values[i]) << 16 | 0x3c00U) << values[i];
    EXPECT_EQ(bf16_pair[i], 0x3f80U << 16 | bf16.nearest(values[i])) << values[i];
    if (!std::isnan(values[i])) {
      EXPECT_EQ(truncated[i], std::bit_cast<std::uint32_t>(values[i]) >> 16) << values[i];
    }
  }
}

}  // namespace
}  // namespace hcp::ptx
