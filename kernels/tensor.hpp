/// Views of tensors in the `thd` layout: [rows, heads, dim], one row per token; and of strided tables in
/// them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/data_type.hpp"

namespace hcp {

/// Where memory lives; what lives in different spaces is never mixed.
enum class MemorySpace : std::uint8_t { host, device };

/// A tensor somebody else owns, contiguous, slowest dimension first.
template <typename Byte>
struct BasicTensorView {
  Byte* data = nullptr;
  DataType type = DataType::fp32;
  std::int64_t rows = 0;
  std::int64_t heads = 0;
  std::int64_t dim = 0;

  [[nodiscard]] std::int64_t row_elements() const { return heads * dim; }
  [[nodiscard]] std::int64_t row_bytes() const {
    return row_elements() * static_cast<std::int64_t>(size_of(type));
  }
  [[nodiscard]] std::int64_t bytes() const { return rows * row_bytes(); }

  /// Rows [first, first + count).
  [[nodiscard]] BasicTensorView row_slice(std::int64_t first, std::int64_t count) const {
    return {data + first * row_bytes(), type, count, heads, dim};
  }
  operator BasicTensorView<const std::byte>() const { return {data, type, rows, heads, dim}; }  // NOLINT
};

using TensorView = BasicTensorView<std::byte>;
using ConstTensorView = BasicTensorView<const std::byte>;

/// A strided table of `rows` runs of `elements` elements each; `stride` is in elements of the table's own
/// type.
template <typename Byte>
struct BasicRowTable {
  Byte* data = nullptr;
  DataType type = DataType::fp32;
  std::int64_t stride = 0;
};

}  // namespace hcp
