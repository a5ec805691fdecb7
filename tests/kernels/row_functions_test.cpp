// The row arithmetic of every instruction set against kernels/data_type, double arithmetic and the plainly
// written operations on rows.

#include "kernels/cpu/row_functions.hpp"

#include <gmock/gmock.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "kernels/row_operations.hpp"
#include "tests/kernels/row_table.hpp"

namespace hcp {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

class RowFunctionsOf : public testing::TestWithParam<const RowFunctions*> {
 protected:
  /// One row of `count` elements.
  static void copy(const std::byte* source, DataType from, std::byte* target, DataType to,
                   std::int64_t count) {
    GetParam()->copy({source, from, count}, {target, to, count}, 1, count, StoreHint::cached);
  }
};
INSTANTIATE_TEST_SUITE_P(All, RowFunctionsOf, testing::ValuesIn(available_row_functions()),
                         [](const auto& info) { return std::string{info.param->instruction_set}; });

std::vector<std::uint16_t> all_patterns() {
  std::vector<std::uint16_t> patterns(65536);
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    patterns[i] = static_cast<std::uint16_t>(i);
  }
  return patterns;
}

const std::byte* bytes_of(const auto& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

TEST_P(RowFunctionsOf, EveryPatternWidensToTheBitsOfDataType) {
  const std::vector<std::uint16_t> patterns = all_patterns();
  for (const DataType type : {DataType::bf16, DataType::fp16}) {
    std::vector<std::uint32_t> expected(patterns.size());
    std::vector<std::uint32_t> actual(patterns.size());
    widen(type, bytes_of(patterns), reinterpret_cast<float*>(expected.data()), patterns.size());
    copy(bytes_of(patterns), type, reinterpret_cast<std::byte*>(actual.data()), DataType::fp32, 65536);
    ASSERT_EQ(actual, expected) << name_of(type);
  }
}

TEST_P(RowFunctionsOf, RoundsToTheBitsOfDataType) {
  std::mt19937 random{1};
  std::vector<float> values;
  for (int i = 0; i < 300000; ++i) {
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  }
  for (const DataType type : {DataType::bf16, DataType::fp16}) {
    for (std::uint16_t pattern = 0; pattern < 0x7fff; ++pattern) {  // halfway points and their neighbours
      const std::array<std::uint16_t, 2> two{pattern, static_cast<std::uint16_t>(pattern + 1)};
      std::array<float, 2> ends{};
      widen(type, bytes_of(two), ends.data(), 2);
      const auto middle = static_cast<float>(static_cast<double>(ends[0]) / 2 + ends[1] / 2.0);
      values.insert(values.end(),
                    {middle, -middle, std::nextafter(middle, 0.0F), std::nextafter(middle, infinity)});
    }
  }
  for (const std::uint32_t bits :
       {0x7f80'0001U, 0xff80'0001U, 0xffff'ffffU, 0x7fc0'0000U, 0x7f80'0000U, 0xff80'0000U, 0x7f7f'ffffU,
        0x0000'0001U, 0x8000'0000U, 0x0000'8000U, 0x0000'8001U, 0x0001'8000U, 0x477f'efffU, 0x477f'f000U}) {
    values.push_back(std::bit_cast<float>(bits));
  }
  const auto count = static_cast<std::int64_t>(values.size());
  for (const DataType type : {DataType::bf16, DataType::fp16}) {
    std::vector<std::uint16_t> expected(values.size());
    std::vector<std::uint16_t> actual(values.size());
    round_to(type, values.data(), reinterpret_cast<std::byte*>(expected.data()), values.size());
    copy(bytes_of(values), DataType::fp32, reinterpret_cast<std::byte*>(actual.data()), type, count);
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(actual[i], expected[i]) << name_of(type) << ' ' << std::hexfloat << values[i];
    }
  }
}

TEST_P(RowFunctionsOf, EqualTypesAreCopiedBitByBit) {
  const std::vector<std::uint16_t> patterns = all_patterns();  // with NaNs that a conversion would change
  for (const DataType type : all_types) {
    std::vector<std::uint16_t> copied(patterns.size());
    copy(bytes_of(patterns), type, reinterpret_cast<std::byte*>(copied.data()), type,
         type == DataType::fp32 ? 32768 : 65536);
    ASSERT_EQ(copied, patterns) << name_of(type);
  }
}

TEST_P(RowFunctionsOf, CopyConvertsRowsOfAnyLengthAndLeavesTheGapsAlone) {
  constexpr std::int64_t rows = 11;
  for (const DataType from : all_types) {
    for (const DataType to : all_types) {
      for (const std::int64_t elements : {1, 7, 8, 15, 16, 17, 72, 333, 2500}) {
        for (const std::int64_t gap : {0, 3}) {
          const Table source{from, rows, elements + gap, 2};
          const Table target{to, rows, elements + 2 * gap};
          const Table expected{to, rows, elements + 2 * gap};
          GetParam()->copy(source.const_view(), target.view(), rows, elements, StoreHint::cached);
          copy_rows_host(source.const_view(), expected.view(), rows, elements);
          ASSERT_EQ(target.bytes.copy(), expected.bytes.copy())
              << name_of(from) << " to " << name_of(to) << ", " << elements << " elements";
        }
      }
    }
  }
}

TEST_P(RowFunctionsOf, StreamingStoresTheSameBits) {
  constexpr std::int64_t rows = 9;
  constexpr std::int64_t elements = 333;
  for (const DataType from : all_types) {
    for (const DataType to : all_types) {
      const Table source{from, rows, elements + 100, 3};
      const Table target{to, rows, 352};  // whole cache lines in every type
      const Table expected{to, rows, 352};
      GetParam()->copy(source.const_view(), target.view(), rows, elements, StoreHint::streaming);
      copy_rows_host(source.const_view(), expected.view(), rows, elements);
      ASSERT_EQ(target.bytes.copy(), expected.bytes.copy()) << name_of(from) << " to " << name_of(to);
    }
  }
}

TEST_P(RowFunctionsOf, AddWidensEveryTypeIntoFp32) {
  constexpr std::int64_t rows = 5;
  for (const DataType from : all_types) {
    for (const std::int64_t elements : {1, 8, 15, 64, 333}) {
      const Table source{from, rows, elements + 1, 4};
      const Table target{DataType::fp32, rows, elements + 3, 5};
      const Table expected{DataType::fp32, rows, elements + 3, 5};
      GetParam()->add(source.const_view(), target.view(), rows, elements);
      add_rows_host(source.const_view(), expected.view(), rows, elements);
      ASSERT_EQ(target.bytes.copy(), expected.bytes.copy()) << name_of(from) << ' ' << elements;
    }
  }
}

TEST_P(RowFunctionsOf, DotSumsProductsOfEveryPairOfTypes) {
  constexpr std::int64_t rows = 5;
  for (const DataType left_type : all_types) {
    for (const DataType right_type : all_types) {
      for (const std::int64_t elements : {1, 8, 13, 64, 72, 96, 128, 256, 1501}) {
        const Table left{left_type, rows, elements + 3, 6};
        const Table right{right_type, rows, elements, 7};
        std::vector<float> sums(rows, -1.0F);
        GetParam()->dot(left.const_view(), right.const_view(), rows, elements, sums.data());
        for (std::int64_t row = 0; row < rows; ++row) {
          double sum = 0.0;
          double magnitude = 0.0;
          for (std::int64_t i = 0; i < elements; ++i) {
            const double product = static_cast<double>(left.value(row, i)) * right.value(row, i);
            sum += product;
            magnitude += std::abs(product);
          }
          ASSERT_NEAR(sums[static_cast<std::size_t>(row)], sum, 3e-7 * magnitude) << elements;
        }
      }
    }
  }
}

/// Rows with sums of all magnitudes: near the ends of the logarithm's interval, 1, and extreme ones.
std::vector<float> hard_sums() {
  std::vector<float> sums{1.0F,     1.0000001F, 0.99999994F, 1.4142135F, 1.4142137F, 0.70710677F, 2.0F,
                          65536.0F, 1e-30F,     1e30F,       3.0F,       0.0F,       1e-45F,      131071.0F};
  std::mt19937 random{8};
  std::uniform_real_distribution<float> exponent{0.0F, 17.0F};
  for (int i = 0; i < 1000; ++i) {
    sums.push_back(std::exp2(exponent(random)));
  }
  return sums;
}

TEST_P(RowFunctionsOf, NormaliseDividesAndTakesTheLogarithmToTheLastPlace) {
  const std::vector<float> sums = hard_sums();
  const auto rows = static_cast<std::int64_t>(sums.size());
  for (const std::int64_t elements : {1, 8, 24, 128, 333}) {
    const Table given{DataType::fp32, rows, elements, 9};
    const Table out{DataType::fp32, rows, elements, 9};
    const Table max{DataType::fp32, rows, 1, 10};
    std::vector<float> lse(sums.size());
    auto* const outputs = reinterpret_cast<float*>(out.bytes.data());
    GetParam()->normalise(outputs, reinterpret_cast<float*>(max.bytes.data()), sums.data(), rows, elements,
                          lse.data());
    for (std::int64_t row = 0; row < rows; ++row) {
      const float sum = sums[static_cast<std::size_t>(row)];
      const float actual = lse[static_cast<std::size_t>(row)];
      if (sum == 0.0F) {
        ASSERT_EQ(actual, -infinity);
      } else {
        const auto exact = static_cast<float>(
            (static_cast<double>(max.value(row, 0)) + std::log2(static_cast<double>(sum))) *
            std::numbers::ln2);
        ASSERT_LE(std::abs(actual - exact), std::abs(exact - std::nextafter(exact, infinity))) << sum;
      }
      for (std::int64_t i = 0; i < elements; ++i) {
        const float quotient = sum == 0.0F ? given.value(row, i) : given.value(row, i) / sum;
        ASSERT_EQ(out.value(row, i), quotient) << given.value(row, i) << " / " << sum;
      }
    }
  }
}

TEST_P(RowFunctionsOf, NormaliseMayWriteTheLogarithmOverTheMaximum) {
  const std::vector<float> sums = hard_sums();
  const auto rows = static_cast<std::int64_t>(sums.size());
  const Table max{DataType::fp32, rows, 1, 11};
  std::vector<float> out(sums.size(), 1.0F);
  std::vector<float> lse(sums.size());
  GetParam()->normalise(out.data(), reinterpret_cast<float*>(max.bytes.data()), sums.data(), rows, 1,
                        lse.data());
  auto* const in_place = reinterpret_cast<float*>(max.bytes.data());
  GetParam()->normalise(out.data(), in_place, sums.data(), rows, 1, in_place);
  EXPECT_EQ(std::vector<float>(in_place, in_place + rows), lse);
}

TEST_P(RowFunctionsOf, NormaliseKeepsInfinitiesAndNaNs) {
  std::vector<float> out{infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), 3.0F};
  const std::vector<float> max{0.0F, infinity};
  const std::vector<float> sum{3.0F, infinity};
  std::vector<float> lse(2);
  GetParam()->normalise(out.data(), max.data(), sum.data(), 1, 4, lse.data());
  EXPECT_EQ(out[0], infinity);
  EXPECT_EQ(out[1], -infinity);
  EXPECT_TRUE(std::isnan(out[2]));
  EXPECT_EQ(out[3], 1.0F);
  GetParam()->normalise(out.data(), max.data() + 1, sum.data() + 1, 1, 0, lse.data());
  EXPECT_EQ(lse[0], infinity);
}

}  // namespace
}  // namespace hcp
