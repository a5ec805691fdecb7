// Relative errors of chunks, by hand.

#include "src/job/error_norms.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "src/job/layer_values.hpp"

namespace hcp {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(ErrorNorms, MagnitudesStandInForAReferenceThatVanishes) {
  ErrorNorms norms{3};
  norms.add(0, 3e-6, 0.0, 0.0);
  EXPECT_EQ(norms.largest({{0, 1}, {5, 6}, {9, 10}})->error, infinity) << "nothing to compare with";
  ErrorNorms with_magnitude{3};
  with_magnitude.add(1, 3.0, 0.0, 30.0);
  with_magnitude.add(1, 4.0, 0.0, 40.0);
  with_magnitude.add(2, 0.0, 0.0, 0.0);
  const auto largest = with_magnitude.largest({{0, 1}, {5, 6}, {9, 10}});
  EXPECT_NEAR(largest->error, 0.1, 1e-15);
  EXPECT_EQ(largest->chunk, (PositionRange{5, 6}));
}

TEST(ErrorNorms, EqualInfinitiesAreNoError) {
  ErrorNorms norms{1};
  norms.add(0, -infinity, -infinity, 0.0);
  norms.add(0, 2.0, 2.0, 0.0);
  EXPECT_EQ(norms.largest({{0, 2}})->error, 0.0);
  norms.add(0, 1.0, -infinity, 0.0);
  EXPECT_EQ(norms.largest({{0, 2}})->error, infinity);
}

TEST(ErrorNorms, AnExponentOf0HasASizeToo) {
  ErrorNorms norms{1};
  norms.add(0, 1e-6, 0.0, magnitude_of_exponent(0.0));
  EXPECT_NEAR(norms.largest({{0, 1}})->error, 1e-6, 1e-15);
  EXPECT_EQ(magnitude_of_exponent(-infinity), 0.0);
}

TEST(Delta, HasASizeWhereItsTermsCancel) {
  Delta delta;
  delta.append({3, 4, 3, 4}, {4, -3, 1, 1}, 2);
  EXPECT_EQ(delta.sums, (std::vector<double>{0, 7}));
  EXPECT_NEAR(delta.magnitudes[0], std::sqrt(288.0), 1e-12);
  EXPECT_EQ(delta.magnitudes[1], 7);
}

}  // namespace
}  // namespace hcp
