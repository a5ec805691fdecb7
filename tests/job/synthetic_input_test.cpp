// Values made from a seed: the same however rows and heads are dealt, different in everything that is keyed.

#include <gmock/gmock.h>

#include <cmath>
#include <set>
#include <stdexcept>
#include <vector>

#include "src/job/input.hpp"

namespace hcp {
namespace {

constexpr std::int64_t dim = 8;

std::vector<float> values(const InputSource& source, InputTensor tensor, const PositionSet& rows,
                          std::int64_t first_head, std::int64_t heads, int layer = 0,
                          DataType type = DataType::fp32, std::int64_t channels = dim) {
  TensorView view{nullptr, type, count_of(rows), heads, channels};
  std::vector<std::byte> bytes(static_cast<std::size_t>(view.bytes()));
  view.data = bytes.data();
  source.fill(tensor, rows, first_head, layer, view);
  std::vector<float> wide(static_cast<std::size_t>(view.rows * view.row_elements()));
  widen(type, bytes.data(), wide.data(), wide.size());
  return wide;
}

TEST(SyntheticInput, ValuesDoNotDependOnHowRowsAndHeadsAreDealt) {
  const auto source = make_synthetic_input(7);
  const std::vector<float> whole = values(*source, InputTensor::k, {{0, 40}}, 0, 6);
  const std::vector<float> part = values(*source, InputTensor::k, {{3, 5}, {30, 33}}, 2, 3);
  const std::vector<std::int64_t> rows{3, 4, 30, 31, 32};
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (std::size_t i = 0; i < 3 * dim; ++i) {
      ASSERT_EQ(part[row * 3 * dim + i], whole[static_cast<std::size_t>(rows[row]) * 6 * dim + 2 * dim + i]);
    }
  }
}

TEST(SyntheticInput, EveryKeyChangesTheValues) {
  const auto source = make_synthetic_input(7);
  const auto other = make_synthetic_input(8);
  std::set<std::vector<float>> distinct;
  for (const InputTensor tensor : {InputTensor::q, InputTensor::k, InputTensor::v, InputTensor::dout}) {
    for (const int layer : {0, 1}) {
      for (const InputSource* each : {source.get(), other.get()}) {
        for (const std::int64_t token : {0, 1}) {
          for (const std::int64_t head : {0, 1}) {
            distinct.insert(values(*each, tensor, {{token, token + 1}}, head, 1, layer));
          }
        }
      }
    }
  }
  EXPECT_EQ(distinct.size(), 4U * 2 * 2 * 2 * 2);
}

TEST(SyntheticInput, HasMeanZeroVarianceOneAndNoCorrelationOfNeighbours) {
  const auto source = make_synthetic_input(0);
  const std::vector<float> sample = values(*source, InputTensor::q, {{0, 2000}}, 0, 10);
  const auto count = static_cast<double>(sample.size());
  double sum = 0, squares = 0, neighbours = 0;
  for (std::size_t i = 0; i < sample.size(); ++i) {
    ASSERT_LE(std::abs(sample[i]), std::sqrt(6.0F));
    sum += sample[i];
    squares += static_cast<double>(sample[i]) * sample[i];
    neighbours += i > 0 ? static_cast<double>(sample[i]) * sample[i - 1] : 0.0;
  }
  // Standard deviations of these means of 160000 values are 0.0025 and about 0.003.
  EXPECT_NEAR(sum / count, 0.0, 0.0125);
  EXPECT_NEAR(squares / count, 1.0, 0.015);
  EXPECT_NEAR(neighbours / count, 0.0, 0.0125);
}

TEST(SyntheticInput, StoredTypesHoldTheRoundedFp32Values) {
  const auto source = make_synthetic_input(3);
  const std::vector<float> exact = values(*source, InputTensor::v, {{5, 25}}, 0, 2);
  for (const DataType type : {DataType::bf16, DataType::fp16}) {
    const std::vector<float> stored = values(*source, InputTensor::v, {{5, 25}}, 0, 2, 0, type);
    const float unit = type == DataType::bf16 ? 0x1p-8F : 0x1p-11F;
    bool any_rounded = false;
    for (std::size_t i = 0; i < exact.size(); ++i) {
      ASSERT_NEAR(stored[i], exact[i], unit * std::abs(exact[i]));
      any_rounded = any_rounded || stored[i] != exact[i];
    }
    EXPECT_TRUE(any_rounded);
  }
}

TEST(SyntheticInput, OddDimensionsAreFilledToo) {
  const auto source = make_synthetic_input(3);
  const std::vector<float> odd = values(*source, InputTensor::q, {{0, 1}}, 0, 1, 0, DataType::fp32, 5);
  const std::vector<float> even = values(*source, InputTensor::q, {{0, 1}}, 0, 1, 0, DataType::fp32, 6);
  EXPECT_EQ(odd, std::vector<float>(even.begin(), even.begin() + 5));
}

TEST(SyntheticInput, KnowsNoOut) {
  const auto source = make_synthetic_input(3);
  EXPECT_FALSE(source->has_out());
  EXPECT_THROW(values(*source, InputTensor::out, {{0, 1}}, 0, 1), std::logic_error);
}

}  // namespace
}  // namespace hcp
