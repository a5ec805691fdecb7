// Row operations against element-wise arithmetic in double.

#include "kernels/row_operations.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <random>
#include <stdexcept>
#include <vector>

namespace hcp {
namespace {

constexpr std::array all_types{DataType::fp32, DataType::bf16, DataType::fp16};

struct Table {
  std::vector<std::byte> bytes;
  DataType type;
  std::int64_t stride;

  Table(DataType storage, std::int64_t rows, std::int64_t row_stride)
      : bytes(static_cast<std::size_t>(rows * row_stride) * size_of(storage)),
        type{storage},
        stride{row_stride} {}
  [[nodiscard]] std::vector<float> values() const {
    std::vector<float> wide(bytes.size() / size_of(type));
    widen(type, bytes.data(), wide.data(), wide.size());
    return wide;
  }
  void set(const std::vector<float>& wide) { round_to(type, wide.data(), bytes.data(), wide.size()); }
  BasicRowTable<std::byte> view() { return {bytes.data(), type, stride}; }
  [[nodiscard]] BasicRowTable<const std::byte> const_view() const { return {bytes.data(), type, stride}; }
};

std::vector<float> random_values(std::size_t count, unsigned seed) {
  std::mt19937 random{seed};
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) {
    value = normal(random);
  }
  return values;
}

constexpr std::int64_t rows = 3;
constexpr std::int64_t elements = 2500;  // more than one chunk, and not a whole number of them

TEST(RowOperations, CopyConvertsEveryPairOfTypesAndLeavesTheGapsAlone) {
  for (const DataType from : all_types) {
    for (const DataType to : all_types) {
      Table source{from, rows, elements + 5};
      Table target{to, rows, elements + 2};
      source.set(random_values(static_cast<std::size_t>(rows * source.stride), 6));
      target.set(std::vector<float>(static_cast<std::size_t>(rows * target.stride), 7.0F));
      copy_rows_host(source.const_view(), target.view(), rows, elements);

      const std::vector<float> given = source.values();
      const std::vector<float> copied = target.values();
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t i = 0; i < target.stride; ++i) {
          Table expected{to, 1, 1};
          expected.set({i < elements ? given[static_cast<std::size_t>(row * source.stride + i)] : 7.0F});
          ASSERT_EQ(copied[static_cast<std::size_t>(row * target.stride + i)], expected.values()[0]);
        }
      }
    }
  }
}

TEST(RowOperations, AddWidensEveryTypeIntoFp32) {
  for (const DataType from : all_types) {
    Table source{from, rows, elements + 1};
    Table target{DataType::fp32, rows, elements + 3};
    source.set(random_values(static_cast<std::size_t>(rows * source.stride), 8));
    target.set(random_values(static_cast<std::size_t>(rows * target.stride), 9));
    const std::vector<float> before = target.values();
    const std::vector<float> added = source.values();
    add_rows_host(source.const_view(), target.view(), rows, elements);
    const std::vector<float> after = target.values();
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t i = 0; i < target.stride; ++i) {
        const auto place = static_cast<std::size_t>(row * target.stride + i);
        const float addend = i < elements ? added[static_cast<std::size_t>(row * source.stride + i)] : 0.0F;
        ASSERT_EQ(after[place], before[place] + addend);
      }
    }
  }
}

TEST(RowOperations, AddRefusesATargetOfTwoBytes) {
  Table source{DataType::fp32, 1, 4};
  Table target{DataType::bf16, 1, 4};
  EXPECT_THROW(add_rows_host(source.const_view(), target.view(), 1, 4), std::invalid_argument);
}

TEST(RowOperations, RowDotSumsOverTheDimensionOfEachHead) {
  constexpr std::int64_t heads = 5;
  for (const DataType type : all_types) {
    for (const std::int64_t dim :
         {std::int64_t{8}, std::int64_t{13}, std::int64_t{256}, std::int64_t{1500}}) {
      Table out{type, rows, heads * dim};
      Table dout{type, rows, heads * dim};
      out.set(random_values(static_cast<std::size_t>(rows * heads * dim), 10));
      dout.set(random_values(static_cast<std::size_t>(rows * heads * dim), 11));
      std::vector<float> delta(static_cast<std::size_t>(rows * heads), -1.0F);
      row_dot_host({out.bytes.data(), type, rows, heads, dim}, {dout.bytes.data(), type, rows, heads, dim},
                   delta.data());

      const std::vector<float> a = out.values();
      const std::vector<float> b = dout.values();
      for (std::size_t row = 0; row < delta.size(); ++row) {
        double sum = 0;
        double magnitude = 0;
        for (std::size_t i = row * static_cast<std::size_t>(dim);
             i < (row + 1) * static_cast<std::size_t>(dim); ++i) {
          sum += static_cast<double>(a[i]) * b[i];
          magnitude += std::abs(static_cast<double>(a[i]) * b[i]);
        }
        ASSERT_NEAR(delta[row], sum, 1e-6 * magnitude);
      }
    }
  }
}

TEST(RowOperations, RowDotRefusesShapesThatDiffer) {
  EXPECT_THROW(row_dot_host({nullptr, DataType::fp32, 1, 2, 8}, {nullptr, DataType::fp32, 1, 2, 16}, nullptr),
               std::invalid_argument);
}

}  // namespace
}  // namespace hcp
