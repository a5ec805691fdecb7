// Conversions of storage types: every 16-bit pattern, and rounding against the definition in double
// arithmetic.

#include "kernels/data_type.hpp"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

namespace hcp {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

float widened(DataType type, std::uint16_t bits) {
  std::byte source[2];
  std::memcpy(source, &bits, 2);
  float value = 0;
  widen(type, source, &value, 1);
  return value;
}

std::uint16_t rounded(DataType type, float value) {
  std::byte target[2];
  round_to(type, &value, target, 1);
  std::uint16_t bits = 0;
  std::memcpy(&bits, target, 2);
  return bits;
}

struct Format {
  DataType type;
  int mantissa_bits;
  int least_exponent;  // of a normal number
  double beyond;       // values of this magnitude and more round to infinity
};
constexpr Format bf16{DataType::bf16, 7, -126, 0x1.ffp127};
constexpr Format fp16{DataType::fp16, 10, -14, 65520.0};

/// The nearest number of the format, ties to even, from the definition.
double nearest(const Format& format, float value) {
  const double x = value;
  if (std::isnan(x) || std::isinf(x) || x == 0) {
    return x;
  }
  if (std::abs(x) >= format.beyond) {
    return std::copysign(infinity, x);
  }
  const int exponent = std::max(std::ilogb(x), format.least_exponent);
  return std::ldexp(std::nearbyint(std::ldexp(x, format.mantissa_bits - exponent)),
                    exponent - format.mantissa_bits);
}

double value_of(const Format& format, std::uint16_t bits) {
  const int exponent_bits = 15 - format.mantissa_bits;
  const int exponent = bits >> format.mantissa_bits & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << format.mantissa_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1) {
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * infinity;
  }
  const int whole = exponent == 0 ? mantissa : mantissa + (1 << format.mantissa_bits);
  return sign * std::ldexp(whole, std::max(exponent, 1) - 1 + format.least_exponent - format.mantissa_bits);
}

class HalfType : public testing::TestWithParam<Format> {};
INSTANTIATE_TEST_SUITE_P(Both, HalfType, testing::Values(bf16, fp16),
                         [](const auto& info) { return std::string{name_of(info.param.type)}; });

TEST_P(HalfType, EveryPatternWidensExactlyAndRoundsBack) {
  for (int pattern = 0; pattern <= 0xffff; ++pattern) {
    const auto bits = static_cast<std::uint16_t>(pattern);
    const double expected = value_of(GetParam(), bits);
    const float wide = widened(GetParam().type, bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(wide)) << pattern;
      ASSERT_TRUE(std::isnan(value_of(GetParam(), rounded(GetParam().type, wide)))) << pattern;
    } else {
      ASSERT_EQ(wide, expected) << pattern;
      ASSERT_EQ(std::signbit(wide), std::signbit(expected)) << pattern;
      ASSERT_EQ(rounded(GetParam().type, wide), bits) << pattern;
    }
  }
}

TEST_P(HalfType, RoundsToNearestTiesToEven) {
  std::mt19937 random{4};
  std::uniform_int_distribution<std::uint32_t> any;
  std::vector<float> values;
  for (int i = 0; i < 300000; ++i) {
    values.push_back(std::bit_cast<float>(any(random)));
  }
  for (int pattern = 0; pattern < 0x7fff; ++pattern) {  // halfway points and their neighbours
    const double low = value_of(GetParam(), static_cast<std::uint16_t>(pattern));
    const double high = value_of(GetParam(), static_cast<std::uint16_t>(pattern + 1));
    const auto middle = static_cast<float>(low / 2 + high / 2);
    values.insert(values.end(),
                  {middle, -middle, std::nextafter(middle, 0.0F), std::nextafter(middle, infinity)});
  }
  values.insert(values.end(),
                {65519.996F, 65520.0F, 3.4028235e38F, 0.0F, -0.0F, infinity, -infinity, 1e-45F});
  for (const float value : values) {
    const double expected = nearest(GetParam(), value);
    const double actual = value_of(GetParam(), rounded(GetParam().type, value));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(actual));
    } else {
      ASSERT_EQ(actual, expected) << std::hexfloat << value;
      ASSERT_EQ(std::signbit(actual), std::signbit(expected)) << std::hexfloat << value;
    }
  }
}

TEST_P(HalfType, NaNWithAPayloadInTheLowBitsStaysNaN) {
  EXPECT_TRUE(std::isnan(value_of(GetParam(), rounded(GetParam().type, std::bit_cast<float>(0x7f80'0001)))));
  EXPECT_TRUE(std::isnan(value_of(GetParam(), rounded(GetParam().type, std::bit_cast<float>(0xffff'ffff)))));
}

TEST_P(HalfType, LongRowsAgreeWithSingleValues) {
  std::mt19937 random{5};
  std::normal_distribution<float> normal;
  std::vector<float> values(1003);
  for (float& value : values) {
    value = normal(random);
  }
  std::vector<std::byte> stored(2 * values.size());
  round_to(GetParam().type, values.data(), stored.data(), values.size());
  std::vector<float> wide(values.size());
  widen(GetParam().type, stored.data(), wide.data(), wide.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(wide[i], nearest(GetParam(), values[i]));
  }
}

TEST(DataType, NamesRoundTripAndOthersAreRefused) {
  for (const DataType type : {DataType::fp32, DataType::bf16, DataType::fp16}) {
    EXPECT_EQ(parse_data_type(name_of(type)), type);
  }
  EXPECT_THROW(static_cast<void>(parse_data_type("float32")), std::invalid_argument);
  EXPECT_EQ(size_of(DataType::fp32), 4U);
  EXPECT_EQ(size_of(DataType::bf16), 2U);
}

}  // namespace
}  // namespace hcp
