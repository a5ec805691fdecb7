/// The fp64 loops under the reference attention. Each is compiled for several instruction sets, and the
/// widest that the processor has is taken when the program starts.
#pragma once

#include <cstdint>

namespace hcp {

/// Element (row, column) stands at data[row * row_stride + column * column_stride].
struct StridedMatrix {
  const double* data = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 1;

  [[nodiscard]] StridedMatrix transposed() const { return {data, column_stride, row_stride}; }
};

/// Whether the right factor of a product enters with its values or their magnitudes.
enum class RightFactor { values, magnitudes };

/// c += a b, or c += a |b|.
/// @param a [rows, depth]
/// @param b [depth, columns]
/// @param c [rows, columns], row-major, `c_stride` doubles from row to row
void add_product(std::int64_t rows, std::int64_t columns, std::int64_t depth, StridedMatrix a,
                 StridedMatrix b, RightFactor kind, double* c, std::int64_t c_stride);

/// Largest of `count` values, -inf of none. No value may be NaN.
[[nodiscard]] double maximum(const double* values, std::int64_t count);

/// values[i] = exp(scale * values[i] - shift), to about one unit in the last place of exp; what would be
/// below 1e-307 is 0, what would be above 1e307 is infinite. No value may be NaN.
/// @return the sum of the new values
double exponentiate(double* values, std::int64_t count, double scale, double shift);

}  // namespace hcp
