#include "kernels/reference_attention.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "kernels/fp64_arithmetic.hpp"

namespace hcp {
namespace {

constexpr std::int64_t tile_queries = 128;
constexpr std::int64_t tile_keys = 128;
constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

/// One value per (query, key) of a tile.
using Tile = std::vector<double>;

/// Columns [begin, end) of a tile.
struct Columns {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] std::int64_t size() const { return end - begin; }
};

/// The two runs of columns that each row of a tile sees.
class VisibleColumns {
 public:
  VisibleColumns(const AttentionMask& mask, std::span<const std::int64_t> queries) {
    for (const std::int64_t query : queries) {
      seen_.push_back(mask.visible(query));
      for (const PositionRange keys : seen_.back()) {
        if (!keys.empty()) {
          reach_ = {std::min(reach_.begin, keys.begin), std::max(reach_.end, keys.end)};
        }
      }
    }
    columns_.resize(seen_.size());
  }

  /// Moves to the tile of `keys`, ascending. False if no row sees any of them.
  bool move_to(std::span<const std::int64_t> keys) {
    if (keys.back() < reach_.begin || keys.front() >= reach_.end) {
      return false;
    }
    bool any = false;
    for (std::size_t row = 0; row < seen_.size(); ++row) {
      for (std::size_t i = 0; i < 2; ++i) {
        const auto column_at = [&](std::int64_t position) {
          return std::ranges::lower_bound(keys, position) - keys.begin();
        };
        columns_[row][i] = {column_at(seen_[row][i].begin), column_at(seen_[row][i].end)};
        any = any || columns_[row][i].size() > 0;
      }
    }
    return any;
  }

  [[nodiscard]] const std::array<Columns, 2>& of_row(std::int64_t row) const {
    return columns_[static_cast<std::size_t>(row)];
  }

 private:
  std::vector<std::array<PositionRange, 2>> seen_;
  std::vector<std::array<Columns, 2>> columns_;
  PositionRange reach_{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
};

/// Zeroes what stands between and outside of the runs.
void clear_hidden(double* row, std::int64_t columns, const std::array<Columns, 2>& visible) {
  std::int64_t cleared = 0;
  for (const Columns& run : visible) {
    if (run.size() > 0) {
      std::fill(row + cleared, row + run.begin, 0.0);
      cleared = run.end;
    }
  }
  std::fill(row + cleared, row + columns, 0.0);
}

/// tile = a b^T; a [rows, depth] and b [columns, depth] row-major.
void product_of_rows(Tile& tile, std::int64_t rows, std::int64_t columns, std::int64_t depth, const double* a,
                     const double* b) {
  std::fill(tile.begin(), tile.begin() + rows * columns, 0.0);
  add_product(rows, columns, depth, {a, depth}, StridedMatrix{b, depth}.transposed(), RightFactor::values,
              tile.data(), columns);
}

std::vector<double> squares_of(const double* values, std::int64_t count) {
  std::vector<double> squares(values, values + count);
  std::ranges::for_each(squares, [](double& value) { value *= value; });
  return squares;
}

/// Calls work(visible, first query, queries, first key, keys) for every tile that is not empty.
template <typename Work>
void for_each_tile(const AttentionMask& mask, std::span<const std::int64_t> queries,
                   std::span<const std::int64_t> keys, const Work& work) {
  for (std::size_t query = 0; query < queries.size(); query += tile_queries) {
    const auto tile_rows =
        queries.subspan(query, std::min<std::size_t>(tile_queries, queries.size() - query));
    VisibleColumns visible{mask, tile_rows};
    for (std::size_t key = 0; key < keys.size(); key += tile_keys) {
      const auto tile_columns = keys.subspan(key, std::min<std::size_t>(tile_keys, keys.size() - key));
      if (visible.move_to(tile_columns)) {
        work(visible, static_cast<std::int64_t>(query), std::ssize(tile_rows), static_cast<std::int64_t>(key),
             std::ssize(tile_columns));
      }
    }
  }
}

/// Decides row by row what is dropped.
class DroppedElements {
 public:
  /// @param head  of which dropout is not null
  explicit DroppedElements(const ReferenceHead& head) : dropout_{*head.dropout}, head_{head.head} {}

  /// Multiplies the elements of a query's row that belong to `keys` by D.
  void apply(std::int64_t query, std::span<const std::int64_t> keys, double* elements) {
    const std::size_t document = dropout_.document_of(query);
    if (document != document_) {
      document_ = document;
      stream_ = dropout_stream(dropout_, document, head_);
    }
    const auto place = static_cast<std::uint32_t>(query - dropout_.query_offsets[document]);
    std::int64_t drawn = -1;
    std::array<std::uint16_t, dropout_block_keys> numbers{};
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const auto key = static_cast<std::uint32_t>(keys[i] - dropout_.key_offsets[document]);
      if (drawn != key / dropout_block_keys) {
        drawn = key / dropout_block_keys;
        numbers = dropout_numbers(stream_, place, key / dropout_block_keys);
      }
      elements[i] *= numbers[key % dropout_block_keys] < dropout_.threshold() ? 0.0 : dropout_.scale();
    }
  }

 private:
  const Dropout& dropout_;
  std::int64_t head_;
  std::size_t document_ = std::numeric_limits<std::size_t>::max();
  DropoutStream stream_{};
};

/// None if nothing is dropped.
std::optional<DroppedElements> dropped_elements(const ReferenceHead& head) {
  return head.dropout != nullptr && head.dropout->drops() ? std::optional{DroppedElements{head}}
                                                          : std::nullopt;
}

/// The largest score of a row.
double largest_score(const double* products, const std::array<Columns, 2>& visible, double softmax_scale) {
  double largest = minus_infinity;
  for (const Columns& run : visible) {
    const double of_run = maximum(products + run.begin, run.size());
    largest = std::max(largest, run.size() > 0 ? softmax_scale * of_run : minus_infinity);
  }
  return largest;
}

/// Turns the products q k^T of one row into exp(s - new maximum), and scales what was folded in before to the
/// new maximum. @return the factor by which the sum of exponentials, 1 at the old lse, must be divided
double fold_row(double* products, const std::array<Columns, 2>& visible, double softmax_scale, double largest,
                double* out, std::int64_t dim_v, double& lse) {
  const double shift = std::max(largest, lse);
  const double rescale = lse == minus_infinity ? 0.0 : std::exp(lse - shift);
  double sum = rescale;
  for (const Columns& run : visible) {
    sum += exponentiate(products + run.begin, run.size(), softmax_scale, shift);
  }
  std::for_each(out, out + dim_v, [rescale](double& value) { value *= rescale; });
  lse = shift + std::log(sum);
  return sum;
}

/// products = P = exp(s - lse) where visible, 0 elsewhere.
void probabilities(double* products, std::int64_t columns, const std::array<Columns, 2>& visible,
                   double softmax_scale, double lse) {
  if (lse == minus_infinity) {
    std::fill(products, products + columns, 0.0);
    return;
  }
  clear_hidden(products, columns, visible);
  for (const Columns& run : visible) {
    exponentiate(products + run.begin, run.size(), softmax_scale, lse);
  }
}

/// Rows of a gradient, if it is wanted.
struct GradientRows {
  double* gradient;
  std::int64_t first;
  std::int64_t count;
};

/// Rows that are summed with weights: [rows, dim].
struct FactorRows {
  const double* data;
  std::int64_t rows;
  std::int64_t dim;

  /// @param weights [target.count, rows]
  void add_weighted(StridedMatrix weights, GradientRows target, RightFactor kind) const {
    if (target.gradient != nullptr) {
      add_product(target.count, dim, rows, weights, {data, dim}, kind, target.gradient + target.first * dim,
                  dim);
    }
  }
};

}  // namespace

void fold_reference_attention(const ReferenceHead& head, const ReferenceQueries& queries,
                              const ReferenceKeys& keys, const ReferenceOutput& running) {
  Tile scores(tile_queries * tile_keys);
  std::array<double, tile_queries> sums{};
  std::optional<DroppedElements> dropped = dropped_elements(head);
  for_each_tile(*head.mask, queries.positions, keys.positions,
                [&](const VisibleColumns& visible, std::int64_t query, std::int64_t rows, std::int64_t key,
                    std::int64_t columns) {
                  product_of_rows(scores, rows, columns, head.dim_qk, queries.q + query * head.dim_qk,
                                  keys.k + key * head.dim_qk);
                  double* const out = running.out + query * head.dim_v;
                  for (std::int64_t row = 0; row < rows; ++row) {
                    const auto& seen = visible.of_row(row);
                    double* const products = scores.data() + row * columns;
                    clear_hidden(products, columns, seen);
                    double& sum = sums[static_cast<std::size_t>(row)];
                    sum = 1.0;
                    if (seen[0].size() + seen[1].size() <= 0) {
                      continue;
                    }
                    const double largest = largest_score(products, seen, head.softmax_scale);
                    sum = fold_row(products, seen, head.softmax_scale, largest, out + row * head.dim_v,
                                   head.dim_v, running.lse[query + row]);
                    if (running.max_logit != nullptr) {
                      double& before = running.max_logit[query + row];
                      before = std::max(before, largest);
                    }
                    if (dropped) {
                      dropped->apply(queries.positions[static_cast<std::size_t>(query + row)],
                                     keys.positions.subspan(static_cast<std::size_t>(key),
                                                            static_cast<std::size_t>(columns)),
                                     products);
                    }
                  }
                  add_product(rows, head.dim_v, columns, {scores.data(), columns},
                              {keys.v + key * head.dim_v, head.dim_v}, RightFactor::values, out, head.dim_v);
                  for (std::int64_t row = 0; row < rows; ++row) {
                    const double sum = sums[static_cast<std::size_t>(row)];
                    std::for_each(out + row * head.dim_v, out + (row + 1) * head.dim_v,
                                  [sum](double& value) { value /= sum; });
                  }
                });
}

void fold_reference_gradient(const ReferenceHead& head, const ReferenceQueries& queries,
                             const ReferenceOutputGradient& output, const ReferenceKeys& keys,
                             const ReferenceGradient& gradient) {
  Tile p(tile_queries * tile_keys);
  Tile ds(tile_queries * tile_keys);
  Tile ds_magnitude(tile_queries * tile_keys);
  const bool wants_magnitudes = gradient.dq_magnitude != nullptr || gradient.dk_magnitude != nullptr;
  const std::vector<double> dout_squares =
      squares_of(output.dout, std::ssize(queries.positions) * head.dim_v);
  const std::vector<double> v_squares = squares_of(keys.v, std::ssize(keys.positions) * head.dim_v);
  Tile d(tile_queries * tile_keys, 1.0);
  std::optional<DroppedElements> dropped = dropped_elements(head);
  for_each_tile(
      *head.mask, queries.positions, keys.positions,
      [&](const VisibleColumns& visible, std::int64_t query, std::int64_t rows, std::int64_t key,
          std::int64_t columns) {
        const double* const q = queries.q + query * head.dim_qk;
        const double* const dout = output.dout + query * head.dim_v;
        const double* const k = keys.k + key * head.dim_qk;
        product_of_rows(p, rows, columns, head.dim_qk, q, k);
        product_of_rows(ds, rows, columns, head.dim_v, dout, keys.v + key * head.dim_v);
        if (wants_magnitudes) {
          product_of_rows(ds_magnitude, rows, columns, head.dim_v, dout_squares.data() + query * head.dim_v,
                          v_squares.data() + key * head.dim_v);
        }
        for (std::int64_t row = 0; row < rows; ++row) {
          probabilities(p.data() + row * columns, columns, visible.of_row(row), head.softmax_scale,
                        output.lse[query + row]);
          const double delta = output.delta[query + row];
          const double delta_magnitude =
              output.delta_magnitude != nullptr ? output.delta_magnitude[query + row] : std::abs(delta);
          if (dropped) {
            std::fill_n(d.begin() + row * columns, columns, 1.0);
            dropped->apply(
                queries.positions[static_cast<std::size_t>(query + row)],
                keys.positions.subspan(static_cast<std::size_t>(key), static_cast<std::size_t>(columns)),
                d.data() + row * columns);
          }
          for (std::int64_t i = row * columns; i < (row + 1) * columns; ++i) {
            const auto pair = static_cast<std::size_t>(i);
            const double scaled_p = head.softmax_scale * p[pair];
            const double dp_magnitude = std::max(std::abs(ds[pair]), std::sqrt(ds_magnitude[pair]));
            ds_magnitude[pair] = scaled_p * (d[pair] * dp_magnitude + delta_magnitude);
            ds[pair] = scaled_p * (d[pair] * ds[pair] - delta);
            p[pair] *= d[pair];
          }
        }

        const StridedMatrix by_query{ds.data(), columns};
        const StridedMatrix magnitude_by_query{ds_magnitude.data(), columns};
        const StridedMatrix p_by_key = StridedMatrix{p.data(), columns}.transposed();
        const FactorRows key_rows{k, columns, head.dim_qk};
        const FactorRows query_rows{q, rows, head.dim_qk};
        const FactorRows dout_rows{dout, rows, head.dim_v};
        key_rows.add_weighted(by_query, {gradient.dq, query, rows}, RightFactor::values);
        key_rows.add_weighted(magnitude_by_query, {gradient.dq_magnitude, query, rows},
                              RightFactor::magnitudes);
        query_rows.add_weighted(by_query.transposed(), {gradient.dk, key, columns}, RightFactor::values);
        query_rows.add_weighted(magnitude_by_query.transposed(), {gradient.dk_magnitude, key, columns},
                                RightFactor::magnitudes);
        dout_rows.add_weighted(p_by_key, {gradient.dv, key, columns}, RightFactor::values);
        dout_rows.add_weighted(p_by_key, {gradient.dv_magnitude, key, columns}, RightFactor::magnitudes);
      });
}

void add_reference_sink(double sink, std::int64_t rows, std::int64_t dim_v, const ReferenceOutput& output) {
  if (sink == minus_infinity) {
    return;
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    const double before = output.lse[row];
    const double larger = std::max(before, sink);
    const double lse = larger + std::log1p(std::exp(std::min(before, sink) - larger));
    std::for_each(output.out + row * dim_v, output.out + (row + 1) * dim_v,
                  [share = std::exp(before - lse)](double& value) { value *= share; });
    output.lse[row] = lse;
  }
}

double reference_sink_gradient(double sink, std::span<const double> lse, std::span<const double> delta) {
  double gradient = 0.0;
  for (std::size_t row = 0; row < lse.size(); ++row) {
    if (lse[row] != minus_infinity) {
      gradient -= std::exp(sink - lse[row]) * delta[row];
    }
  }
  return gradient;
}

std::vector<double> head_in_fp64(ConstTensorView tensor, std::int64_t head) {
  std::vector<double> values(static_cast<std::size_t>(tensor.rows * tensor.dim));
  std::vector<float> row(static_cast<std::size_t>(tensor.dim));
  for (std::int64_t r = 0; r < tensor.rows; ++r) {
    const std::int64_t element = (r * tensor.heads + head) * tensor.dim;
    widen(tensor.type, tensor.data + element * static_cast<std::int64_t>(size_of(tensor.type)), row.data(),
          row.size());
    std::ranges::copy(row, values.begin() + r * tensor.dim);
  }
  return values;
}

std::vector<std::int64_t> single_positions(std::span<const PositionRange> ranges) {
  std::vector<std::int64_t> positions;
  positions.reserve(static_cast<std::size_t>(count_of(ranges)));
  for (const PositionRange range : ranges) {
    for (std::int64_t position = range.begin; position < range.end; ++position) {
      positions.push_back(position);
    }
  }
  return positions;
}

}  // namespace hcp
