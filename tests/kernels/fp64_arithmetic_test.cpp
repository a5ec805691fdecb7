// The fp64 loops against the standard library.

#include "kernels/fp64_arithmetic.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace hcp {
namespace {

TEST(Fp64Arithmetic, ProductsOfAnySizeAndStride) {
  std::mt19937 random{18};
  std::uniform_real_distribution<double> uniform{-1.0, 1.0};
  const auto values = [&](std::int64_t count) {
    std::vector<double> result(static_cast<std::size_t>(count));
    for (double& value : result) {
      value = uniform(random);
    }
    return result;
  };
  for (const std::int64_t rows : {1, 6, 7, 19}) {
    for (const std::int64_t columns : {1, 8, 13, 300}) {
      for (const std::int64_t depth : {1, 5, 8, 67}) {
        for (const RightFactor kind : {RightFactor::values, RightFactor::magnitudes}) {
          const std::vector<double> a = values(rows * depth);     // stored [depth, rows]
          const std::vector<double> b = values(columns * depth);  // stored [columns, depth]
          const std::vector<double> before = values(rows * (columns + 2));
          std::vector<double> c = before;
          add_product(rows, columns, depth, StridedMatrix{a.data(), rows}.transposed(),
                      StridedMatrix{b.data(), depth}.transposed(), kind, c.data(), columns + 2);
          for (std::int64_t row = 0; row < rows; ++row) {
            for (std::int64_t column = 0; column < columns + 2; ++column) {
              const auto place = static_cast<std::size_t>(row * (columns + 2) + column);
              double expected = before[place];
              for (std::int64_t k = 0; column < columns && k < depth; ++k) {
                const double right = b[static_cast<std::size_t>(column * depth + k)];
                expected += a[static_cast<std::size_t>(k * rows + row)] *
                            (kind == RightFactor::magnitudes ? std::abs(right) : right);
              }
              ASSERT_NEAR(c[place], expected, 1e-12);
            }
          }
        }
      }
    }
  }
}

TEST(Fp64Arithmetic, ExponentialsToTheLastPlace) {
  std::vector<double> arguments{0.0, -0.0, 1e-300, -1e-17, 1.0, -707.9, 708.9};
  for (double x = -707.0; x < 700.0; x += 0.37) {
    arguments.push_back(x);
  }
  std::vector<double> values = arguments;
  double expected_sum = 0;
  const double sum = exponentiate(values.data(), std::ssize(values), 1.0, 0.0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_NEAR(values[i] / std::exp(arguments[i]), 1.0, 4e-16) << arguments[i];
    expected_sum += values[i];
  }
  EXPECT_NEAR(sum / expected_sum, 1.0, 1e-14);

  std::vector<double> scaled{3.0, 5.0};
  EXPECT_NEAR(exponentiate(scaled.data(), 2, 0.5, 2.0), std::exp(-0.5) + std::exp(0.5), 1e-15);
}

TEST(Fp64Arithmetic, ExponentialsBeyondTheRange) {
  std::vector<double> values{-709.0, -1e5, -std::numeric_limits<double>::infinity(), 710.0, 1e5};
  exponentiate(values.data(), std::ssize(values), 1.0, 0.0);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT(values, testing::ElementsAre(0.0, 0.0, 0.0, infinity, infinity));
}

TEST(Fp64Arithmetic, MaximumWhereverItStands) {
  EXPECT_EQ(maximum(nullptr, 0), -std::numeric_limits<double>::infinity());
  for (std::size_t place = 0; place < 21; ++place) {
    std::vector<double> values(21, -3.0);
    values[place] = -2.0;
    EXPECT_EQ(maximum(values.data(), std::ssize(values)), -2.0);
  }
}

}  // namespace
}  // namespace hcp
