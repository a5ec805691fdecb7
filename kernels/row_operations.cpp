#include "kernels/row_operations.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include "kernels/block_checks.hpp"

namespace hcp {
namespace {

/// Elements that are converted at a time: small enough for the first-level cache.
constexpr std::int64_t chunk_elements = 1024;
using Chunk = std::array<float, chunk_elements>;

template <typename Byte>
Byte* element_of(const BasicRowTable<Byte>& table, std::int64_t row, std::int64_t element) {
  return table.data + (row * table.stride + element) * static_cast<std::int64_t>(size_of(table.type));
}

/// Calls `work(first, count)` for the chunks of `elements` elements.
template <typename Work>
void for_each_chunk(std::int64_t elements, const Work& work) {
  for (std::int64_t first = 0; first < elements; first += chunk_elements) {
    work(first, std::min(chunk_elements, elements - first));
  }
}

/// Sum of products in eight running sums, which the compiler may keep in one register without reordering.
float dot(const float* a, const float* b, std::int64_t count) {
  constexpr std::int64_t lanes = 8;
  std::array<float, lanes> sums{};
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      sums[static_cast<std::size_t>(lane)] += a[i + lane] * b[i + lane];
    }
  }
  for (; i < count; ++i) {
    sums[static_cast<std::size_t>(i % lanes)] += a[i] * b[i];
  }
  return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

}  // namespace

void row_dot_host(ConstTensorView out, ConstTensorView dout, float* delta) {
  check_row_dot(out, dout);
  Chunk left;
  Chunk right;
  for (std::int64_t row = 0; row < out.rows * out.heads; ++row) {
    float sum = 0.0F;
    for_each_chunk(out.dim, [&](std::int64_t first, std::int64_t count) {
      const std::int64_t element = row * out.dim + first;
      widen(out.type, out.data + element * static_cast<std::int64_t>(size_of(out.type)), left.data(),
            static_cast<std::size_t>(count));
      widen(dout.type, dout.data + element * static_cast<std::int64_t>(size_of(dout.type)), right.data(),
            static_cast<std::size_t>(count));
      sum += dot(left.data(), right.data(), count);
    });
    delta[row] = sum;
  }
}

void max_logits_host(const float* max, std::int64_t rows, std::int64_t heads, float* logits) {
  for (std::int64_t head = 0; head < heads; ++head) {
    float largest = -std::numeric_limits<float>::infinity();
    for (std::int64_t row = 0; row < rows; ++row) {
      largest = std::max(largest, max[row * heads + head]);
    }
    logits[head] = static_cast<float>(static_cast<double>(largest) * std::numbers::ln2);
  }
}

void finish_forward_host(const RunningOutput& running, std::int64_t rows, std::int64_t heads,
                         std::int64_t dim_v, float* lse, const float* sinks) {
  constexpr double minus_infinity = -std::numeric_limits<double>::infinity();
  for (std::int64_t row = 0; row < rows * heads; ++row) {
    const double sum = running.sum[row];
    const double of_keys = (static_cast<double>(running.max[row]) + std::log2(sum)) * std::numbers::ln2;
    const double sink = sinks == nullptr ? minus_infinity : static_cast<double>(sinks[row % heads]);
    const double larger = std::max(of_keys, sink);
    float* out = running.out + row * dim_v;
    if (larger == minus_infinity) {
      lse[row] = -std::numeric_limits<float>::infinity();
    } else if (sink == minus_infinity) {
      lse[row] = static_cast<float>(of_keys);
      std::for_each(out, out + dim_v, [divisor = running.sum[row]](float& value) { value /= divisor; });
    } else {
      const double all = larger + std::log1p(std::exp(std::min(of_keys, sink) - larger));
      lse[row] = static_cast<float>(all);
      const double factor = sum == 0.0 ? 0.0 : std::exp(of_keys - all) / sum;
      std::for_each(out, out + dim_v, [factor](float& value) { value = static_cast<float>(value * factor); });
    }
  }
}

void copy_rows_host(const BasicRowTable<const std::byte>& source, const BasicRowTable<std::byte>& target,
                    std::int64_t rows, std::int64_t elements) {
  if (elements == 0) {
    return;
  }
  Chunk values;
  for (std::int64_t row = 0; row < rows; ++row) {
    if (source.type == target.type) {
      std::memcpy(element_of(target, row, 0), element_of(source, row, 0),
                  static_cast<std::size_t>(elements) * size_of(source.type));
      continue;
    }
    for_each_chunk(elements, [&](std::int64_t first, std::int64_t count) {
      widen(source.type, element_of(source, row, first), values.data(), static_cast<std::size_t>(count));
      round_to(target.type, values.data(), element_of(target, row, first), static_cast<std::size_t>(count));
    });
  }
}

void add_rows_host(const BasicRowTable<const std::byte>& source, const BasicRowTable<std::byte>& target,
                   std::int64_t rows, std::int64_t elements) {
  check_add_rows(target);
  Chunk addend;
  for (std::int64_t row = 0; row < rows; ++row) {
    for_each_chunk(elements, [&](std::int64_t first, std::int64_t count) {
      widen(source.type, element_of(source, row, first), addend.data(), static_cast<std::size_t>(count));
      auto* sum = reinterpret_cast<float*>(element_of(target, row, first));
      for (std::int64_t i = 0; i < count; ++i) {
        sum[i] += addend[static_cast<std::size_t>(i)];
      }
    });
  }
}

}  // namespace hcp
