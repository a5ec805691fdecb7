// The host kernel's operations on rows: threads, large tables, refusals.

#include "kernels/cpu/row_operations.hpp"

#include <gmock/gmock.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/row_operations.hpp"
#include "tests/kernels/row_table.hpp"

namespace hcp {
namespace {

class RowOperationsOf : public testing::TestWithParam<const RowFunctions*> {};
INSTANTIATE_TEST_SUITE_P(All, RowOperationsOf, testing::ValuesIn(available_row_functions()),
                         [](const auto& info) { return std::string{info.param->instruction_set}; });

TEST_P(RowOperationsOf, BitsDoNotDependOnThreads) {
  constexpr std::int64_t rows = 331;  // large enough for several threads, and no whole number of shares
  constexpr std::int64_t heads = 3;
  constexpr std::int64_t dim = 136;
  constexpr std::int64_t elements = heads * dim;
  std::vector<std::vector<std::byte>> results;
  for (const int threads : {1, 2, 3}) {
    const RowOperations operations{*GetParam(), threads};
    const Table source{DataType::fp32, rows, elements + 8, 12};
    const Table dout{DataType::fp32, rows, elements, 13};
    const Table packed{DataType::bf16, rows, elements};
    const Table whole{DataType::bf16, rows, elements};
    const Table sums{DataType::fp32, rows, elements, 14};
    const Table lse{DataType::fp32, rows, heads, 15};
    const Table delta{DataType::fp32, rows, heads};
    operations.copy_rows(source.const_view(), packed.view(), rows, elements);
    operations.copy_rows(dout.const_view(), whole.view(), rows, elements);
    operations.add_rows(packed.const_view(), sums.view(), rows, elements);
    operations.row_dot({sums.bytes.data(), DataType::fp32, rows, heads, dim},
                       {dout.bytes.data(), DataType::fp32, rows, heads, dim},
                       reinterpret_cast<float*>(delta.bytes.data()));
    auto* const max = reinterpret_cast<float*>(lse.bytes.data());
    const std::vector<float> row_sums(rows * heads, 1.7F);
    auto running_sum = row_sums;
    operations.finish_forward({reinterpret_cast<float*>(sums.bytes.data()), max, running_sum.data()}, rows,
                              heads, dim, max);
    std::vector<std::byte> all = packed.bytes.copy();
    for (const Table* table : {&whole, &sums, &lse, &delta}) {
      const std::vector<std::byte> more = table->bytes.copy();
      all.insert(all.end(), more.begin(), more.end());
    }
    results.push_back(all);
  }
  EXPECT_EQ(results[1], results[0]);
  EXPECT_EQ(results[2], results[0]);
}

TEST_P(RowOperationsOf, LargeTablesAreCopiedAsSmallOnes) {
  constexpr std::int64_t rows = 4099;
  constexpr std::int64_t elements = 2048;  // 16 MiB and more in two bytes each
  for (const int threads : {1, 2}) {
    for (const std::int64_t gap : {0, 32}) {
      const Table source{DataType::fp32, rows, elements + gap, 16};
      const Table target{DataType::bf16, rows, elements};
      const Table expected{DataType::bf16, rows, elements};
      RowOperations{*GetParam(), threads}.copy_rows(source.const_view(), target.view(), rows, elements);
      copy_rows_host(source.const_view(), expected.view(), rows, elements);
      ASSERT_EQ(std::memcmp(target.bytes.data(), expected.bytes.data(), rows * elements * 2), 0);
    }
  }
}

TEST_P(RowOperationsOf, EmptyTablesNeedNoMemory) {
  const RowOperations operations{*GetParam(), 2};
  const BasicRowTable<const std::byte> source{nullptr, DataType::bf16, 0};
  const BasicRowTable<std::byte> target{nullptr, DataType::fp32, 0};
  operations.copy_rows(source, target, 0, 8);
  operations.copy_rows(source, target, 8, 0);
  operations.add_rows(source, target, 0, 0);
  operations.finish_forward({}, 0, 4, 8, nullptr);
  operations.row_dot({nullptr, DataType::bf16, 0, 4, 8}, {nullptr, DataType::bf16, 0, 4, 8}, nullptr);
}

TEST(RowOperationsContract, WrongTypesAndShapesAreRefused) {
  const RowOperations operations{selected_row_functions(), 1};
  const Table source{DataType::fp32, 1, 4};
  const Table target{DataType::bf16, 1, 4};
  EXPECT_THROW(operations.add_rows(source.const_view(), target.view(), 1, 4), std::invalid_argument);
  EXPECT_THROW(
      operations.row_dot({nullptr, DataType::fp32, 1, 2, 8}, {nullptr, DataType::fp32, 1, 2, 16}, nullptr),
      std::invalid_argument);
}

}  // namespace
}  // namespace hcp
