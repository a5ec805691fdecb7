/// Cases for the kernels on rows.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>

#include "kernels/row_operations.hpp"
#include "tests/kernels/row_table.hpp"
#include "tests/mutation/kernel_cases.hpp"

namespace hcp::mutation {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
/// Two blocks do 16 rows at a time: the one has more than two rounds to go, the other ends within its first.
constexpr std::int64_t rows = 37;
constexpr std::int64_t few_rows = 5;

/// Elements and strides: aligned to 16 bytes with and without a rest, and not aligned; rows of which a lane
/// has more than the four runs that nvcc makes one round of a loop.
struct RowSizes {
  std::int64_t rows;
  std::int64_t elements;
  std::int64_t source_stride;
  std::int64_t target_stride;
};
constexpr RowSizes row_sizes[]{
    {rows, 301, 304, 312},  {few_rows, 110, 111, 112},    {few_rows, 359, 361, 360},   {few_rows, 13, 16, 13},
    {few_rows, 24, 24, 48}, {few_rows, 1821, 1824, 1832}, {few_rows, 2303, 2304, 2304}};

bool equal(const Table& a, const Table& b) {
  return a.bytes.copy() == b.bytes.copy();
}

bool near(float value, double expected, double tolerance) {
  return std::isinf(expected) ? static_cast<double>(value) == expected
                              : std::abs(static_cast<double>(value) - expected) <= tolerance;
}

std::vector<KernelCase> copy_cases(DataType from, DataType to) {
  std::vector<KernelCase> cases;
  for (const RowSizes& sizes : row_sizes) {
    cases.push_back({std::to_string(sizes.rows) + " rows of " + std::to_string(sizes.elements),
                     [sizes, from, to](AttentionKernel& kernel) {
                       const Table source{from, sizes.rows, sizes.source_stride, 3};
                       const Table target{to, sizes.rows, sizes.target_stride};
                       const Table expected{to, sizes.rows, sizes.target_stride};
                       kernel.copy_rows(source.const_view(), target.view(), sizes.rows, sizes.elements);
                       copy_rows_host(source.const_view(), expected.view(), sizes.rows, sizes.elements);
                       return equal(target, expected);
                     }});
  }
  return cases;
}

std::vector<KernelCase> add_cases(DataType from) {
  std::vector<KernelCase> cases;
  for (const RowSizes& sizes : row_sizes) {
    cases.push_back({std::to_string(sizes.rows) + " rows of " + std::to_string(sizes.elements),
                     [sizes, from](AttentionKernel& kernel) {
                       const Table source{from, sizes.rows, sizes.source_stride, 4};
                       const Table target{DataType::fp32, sizes.rows, sizes.target_stride, 5};
                       const Table expected{DataType::fp32, sizes.rows, sizes.target_stride, 5};
                       kernel.add_rows(source.const_view(), target.view(), sizes.rows, sizes.elements);
                       add_rows_host(source.const_view(), expected.view(), sizes.rows, sizes.elements);
                       return equal(target, expected);
                     }});
  }
  return cases;
}

std::vector<KernelCase> row_dot_cases(DataType left, DataType right) {
  std::vector<KernelCase> cases;
  for (const auto& [rows, dim] : {std::pair<std::int64_t, std::int64_t>{rows / 2, 13},
                                  {few_rows / 2, 264},
                                  {few_rows / 2, 110},
                                  {few_rows / 2, 359},
                                  {few_rows / 2, 880},
                                  {few_rows / 2, 1816}}) {
    cases.push_back(
        {"rows of " + std::to_string(dim), [rows = rows, dim = dim, left, right](AttentionKernel& kernel) {
           constexpr std::int64_t heads = 2;
           const Table out{left, rows, heads * dim, 6};
           const Table dout{right, rows, heads * dim, 7};
           std::vector<float> delta(static_cast<std::size_t>(rows * heads), -1.0F);
           kernel.row_dot({out.bytes.data(), left, rows, heads, dim},
                          {dout.bytes.data(), right, rows, heads, dim}, delta.data());
           for (std::int64_t row = 0; row < rows * heads; ++row) {
             double sum = 0.0;
             double magnitude = 0.0;
             for (std::int64_t i = 0; i < dim; ++i) {
               const std::int64_t column = row % heads * dim + i;
               const double product = static_cast<double>(out.value(row / heads, column)) *
                                      static_cast<double>(dout.value(row / heads, column));
               sum += product;
               magnitude += std::abs(product);
             }
             if (!near(delta[static_cast<std::size_t>(row)], sum, 1e-6 * magnitude)) {
               return false;
             }
           }
           return true;
         }});
  }
  return cases;
}

bool finish_is_right(AttentionKernel& kernel, std::int64_t rows, std::int64_t dim,
                     const std::vector<float>& sinks) {
  constexpr std::int64_t heads = 4;
  const Table out{DataType::fp32, rows * heads, dim, 8};
  const Table expected{DataType::fp32, rows * heads, dim, 8};
  std::vector<float> max;
  std::vector<float> sum;
  for (std::int64_t row = 0; row < rows * heads; ++row) {
    const bool saw_nothing = row % 5 == 0;
    max.push_back(saw_nothing ? -infinity : static_cast<float>(row - 20));
    sum.push_back(saw_nothing ? 0.0F : 1.0F + static_cast<float>(row) / 3.0F);
    for (const Table* const table : {&out, &expected}) {
      auto* const first = reinterpret_cast<float*>(table->bytes.data()) + row * dim;
      std::fill_n(first, saw_nothing ? dim : 0, 0.0F);
    }
  }
  const float* const sink = sinks.empty() ? nullptr : sinks.data();
  std::vector<float> lse(max.size());
  finish_forward_host({reinterpret_cast<float*>(expected.bytes.data()), max.data(), sum.data()}, rows, heads,
                      dim, lse.data(), sink);
  kernel.finish_forward({reinterpret_cast<float*>(out.bytes.data()), max.data(), sum.data()}, rows, heads,
                        dim, max.data(), sink);
  for (std::int64_t row = 0; row < rows * heads; ++row) {
    const float of_row = lse[static_cast<std::size_t>(row)];
    if (!near(max[static_cast<std::size_t>(row)], static_cast<double>(of_row),
              1e-6 * (1.0 + std::abs(static_cast<double>(of_row))))) {
      return false;
    }
    for (std::int64_t i = 0; i < dim; ++i) {
      const auto right = static_cast<double>(expected.value(row, i));
      if (!near(out.value(row, i), right, 4e-6 * std::abs(right))) {
        return false;
      }
    }
  }
  return true;
}

/// Values of rows and heads; every third head has -inf in all rows.
struct HeadColumns {
  std::int64_t rows;
  std::int64_t heads;
  std::vector<float> first;
  std::vector<float> second;

  HeadColumns(std::int64_t row_count, std::int64_t head_count) : rows{row_count}, heads{head_count} {
    std::mt19937 random{9};
    std::normal_distribution<float> normal;
    for (std::int64_t i = 0; i < rows * heads; ++i) {
      first.push_back(i % heads % 3 == 2 || i % 11 == 0 ? -infinity : normal(random));
      second.push_back(normal(random));
    }
  }
};

bool max_logits_are_right(AttentionKernel& kernel, const HeadColumns& columns) {
  std::vector<float> logits(static_cast<std::size_t>(columns.heads), 7.0F);
  kernel.max_logits(columns.first.data(), columns.rows, columns.heads, logits.data());
  for (std::size_t head = 0; head < logits.size(); ++head) {
    float largest = -infinity;
    for (std::size_t i = head; i < columns.first.size(); i += logits.size()) {
      largest = std::max(largest, columns.first[i]);
    }
    if (!near(logits[head], static_cast<double>(largest) * std::log(2.0), 1e-6)) {
      return false;
    }
  }
  return true;
}

bool sink_gradients_are_right(AttentionKernel& kernel, const HeadColumns& columns) {
  std::vector<float> sinks{0.0F, 1.5F, 0.5F, -infinity, 3.0F};
  sinks.resize(static_cast<std::size_t>(columns.heads), -0.5F);
  std::vector<float> dsinks(sinks.size(), 7.0F);
  kernel.sink_gradients(sinks.data(), columns.first.data(), columns.second.data(), columns.rows,
                        columns.heads, dsinks.data());
  for (std::size_t head = 0; head < sinks.size(); ++head) {
    double sum = 0.0;
    double magnitude = 0.0;
    for (std::size_t i = head; i < columns.first.size(); i += sinks.size()) {
      if (std::isfinite(columns.first[i])) {
        const double term =
            -std::exp(static_cast<double>(sinks[head]) - static_cast<double>(columns.first[i])) *
            static_cast<double>(columns.second[i]);
        sum += term;
        magnitude += std::abs(term);
      }
    }
    if (!near(dsinks[head], sum, 1e-6 * magnitude)) {
      return false;
    }
  }
  return true;
}

/// More rows than threads of a block, so that some have one, some four and some nine; fewer; and one head,
/// which leaves a block without work.
std::vector<KernelCase> head_cases(bool (*is_right)(AttentionKernel& kernel, const HeadColumns& columns)) {
  std::vector<KernelCase> cases;
  for (const auto& [rows_of, heads] :
       {std::pair<std::int64_t, std::int64_t>{3, 1}, {300, 12}, {1000, 5}, {2100, 3}}) {
    cases.push_back({std::to_string(rows_of) + " rows of " + std::to_string(heads) + " heads",
                     [is_right, rows_of = rows_of, heads = heads](AttentionKernel& kernel) {
                       return is_right(kernel, HeadColumns{rows_of, heads});
                     }});
  }
  return cases;
}

bool fill_is_right(AttentionKernel& kernel, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count) + 1, 0.0F);
  kernel.fill(values.data(), count, 2.5F);
  return values.back() == 0.0F &&
         std::all_of(values.begin(), values.end() - 1, [](float value) { return value == 2.5F; });
}

}  // namespace

std::vector<KernelCase> row_cases_of(const KernelInstance& instance) {
  if (instance.family == "copy_rows") {
    return copy_cases(instance.type(0), instance.type(1));
  }
  if (instance.family == "add_rows") {
    return add_cases(instance.type(0));
  }
  if (instance.family == "row_dot") {
    return row_dot_cases(instance.type(0), instance.type(1));
  }
  if (instance.family == "finish_forward") {
    return {
        {"without sinks", [](AttentionKernel& kernel) { return finish_is_right(kernel, rows, 40, {}); }},
        {"long rows", [](AttentionKernel& kernel) { return finish_is_right(kernel, 1, 360, {}); }},
        {"a whole number of rounds",
         [](AttentionKernel& kernel) { return finish_is_right(kernel, 4, 24, {}); }},
        {"four elements a lane", [](AttentionKernel& kernel) { return finish_is_right(kernel, 1, 104, {}); }},
        {"with sinks", [](AttentionKernel& kernel) {
           return finish_is_right(kernel, 2, 256, {0.5F, -infinity, 1e4F, -1e4F});
         }}};
  }
  if (instance.family == "max_logits") {
    return head_cases(max_logits_are_right);
  }
  if (instance.family == "sink_gradients") {
    return head_cases(sink_gradients_are_right);
  }
  if (instance.family == "fill") {
    return {{"few", [](AttentionKernel& kernel) { return fill_is_right(kernel, 100); }},
            {"four a thread", [](AttentionKernel& kernel) { return fill_is_right(kernel, 2000); }},
            {"many", [](AttentionKernel& kernel) { return fill_is_right(kernel, 5000); }}};
  }
  throw std::invalid_argument{"no cases for the kernel " + instance.name()};
}

std::vector<KernelCase> cases_of(const KernelInstance& instance, Extent extent) {
  return is_attention(instance) ? attention_cases_of(instance, extent) : row_cases_of(instance);
}

}  // namespace hcp::mutation
