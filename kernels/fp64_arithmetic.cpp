#include "kernels/fp64_arithmetic.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace hcp {
namespace {

constexpr std::int64_t lanes = 8;            // of sums that are kept side by side
constexpr std::int64_t panel_rows = 8;       // rows of the right factor per sweep over the product
constexpr std::int64_t panel_columns = 256;  // so that a panel stays in the first-level cache

/// A piece of the right factor, row-major. Rows that do not exist are 0.
using Panel = std::array<double, panel_rows * panel_columns>;

void pack(StridedMatrix b, std::int64_t depth, std::int64_t columns, RightFactor kind, Panel& panel) {
  for (std::int64_t column = 0; column < columns; ++column) {
    for (std::int64_t row = 0; row < depth; ++row) {
      const double value = b.data[row * b.row_stride + column * b.column_stride];
      panel[static_cast<std::size_t>(row * columns + column)] =
          kind == RightFactor::magnitudes ? std::abs(value) : value;
    }
  }
  std::fill(panel.begin() + depth * columns, panel.begin() + panel_rows * columns, 0.0);
}

/// c += a panel: the loop over columns is the one that vectorises, with one load and one store of c for
/// panel_rows multiplications.
[[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]] void add_panel(
    std::int64_t rows, std::int64_t columns, std::int64_t depth, StridedMatrix a, const Panel& panel,
    double* c, std::int64_t c_stride) {
  const double* const b = panel.data();
  for (std::int64_t row = 0; row < rows; ++row) {
    std::array<double, panel_rows> left{};
    for (std::int64_t k = 0; k < depth; ++k) {
      left[static_cast<std::size_t>(k)] = a.data[row * a.row_stride + k * a.column_stride];
    }
    double* const sums = c + row * c_stride;
#pragma GCC ivdep
    for (std::int64_t i = 0; i < columns; ++i) {
      sums[i] += left[0] * b[i] + left[1] * b[i + columns] + left[2] * b[i + 2 * columns] +
                 left[3] * b[i + 3 * columns] + left[4] * b[i + 4 * columns] + left[5] * b[i + 5 * columns] +
                 left[6] * b[i + 6 * columns] + left[7] * b[i + 7 * columns];
    }
  }
}

}  // namespace

void add_product(std::int64_t rows, std::int64_t columns, std::int64_t depth, StridedMatrix a,
                 StridedMatrix b, RightFactor kind, double* c, std::int64_t c_stride) {
  Panel panel;
  for (std::int64_t column = 0; column < columns; column += panel_columns) {
    const std::int64_t width = std::min(panel_columns, columns - column);
    for (std::int64_t k = 0; k < depth; k += panel_rows) {
      const std::int64_t height = std::min(panel_rows, depth - k);
      pack({b.data + k * b.row_stride + column * b.column_stride, b.row_stride, b.column_stride}, height,
           width, kind, panel);
      add_panel(rows, width, height, {a.data + k * a.column_stride, a.row_stride, a.column_stride}, panel,
                c + column, c_stride);
    }
  }
}

[[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]] double maximum(const double* values,
                                                                                     std::int64_t count) {
  std::array<double, lanes> largest;
  largest.fill(-std::numeric_limits<double>::infinity());
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      double& held = largest[static_cast<std::size_t>(lane)];
      held = held < values[i + lane] ? values[i + lane] : held;
    }
  }
  for (; i < count; ++i) {
    largest[0] = std::max(largest[0], values[i]);
  }
  return std::ranges::max(largest);
}

[[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]] double exponentiate(double* values,
                                                                                          std::int64_t count,
                                                                                          double scale,
                                                                                          double shift) {
  // exp(x) = 2^n exp(r), n the integer nearest to x / ln 2, |r| <= ln 2 / 2; exp(r) by its Taylor series,
  // whose rest after r^13 is below 1e-17.
  constexpr double log2_e = 0x1.71547652b82fep+0;
  constexpr double ln2_high = 0x1.62e42fefap-1;  // few enough digits that n times it is exact
  constexpr double ln2_low = 0x1.cf79abc9e3b3ap-40;
  constexpr double to_integer = 0x1.8p52;  // added: the last bits hold the nearest integer
  constexpr double smallest = -708.0;      // 2^n is a normal number from here on
  constexpr double largest = 709.0;        // and up to here
  for (std::int64_t i = 0; i < count; ++i) {
    const double x = scale * values[i] - shift;
    const double held = std::clamp(x, smallest, largest);
    const double shifted = held * log2_e + to_integer;
    const double n = shifted - to_integer;
    const double r = (held - n * ln2_high) - n * ln2_low;
    double series = 1.0 / 6227020800.0;
    series = series * r + 1.0 / 479001600.0;
    series = series * r + 1.0 / 39916800.0;
    series = series * r + 1.0 / 3628800.0;
    series = series * r + 1.0 / 362880.0;
    series = series * r + 1.0 / 40320.0;
    series = series * r + 1.0 / 5040.0;
    series = series * r + 1.0 / 720.0;
    series = series * r + 1.0 / 120.0;
    series = series * r + 1.0 / 24.0;
    series = series * r + 1.0 / 6.0;
    series = series * r + 0.5;
    series = series * r + 1.0;
    series = series * r + 1.0;
    const auto power = std::bit_cast<std::uint64_t>(shifted) << 52;
    const double result = std::bit_cast<double>(std::bit_cast<std::uint64_t>(series) + power);
    const double or_zero = x < smallest ? 0.0 : result;
    values[i] = x > largest ? std::numeric_limits<double>::infinity() : or_zero;
  }
  std::array<double, lanes> sums{};
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      sums[static_cast<std::size_t>(lane)] += values[i + lane];
    }
  }
  for (; i < count; ++i) {
    sums[0] += values[i];
  }
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

}  // namespace hcp
