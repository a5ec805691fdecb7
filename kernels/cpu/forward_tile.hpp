/// Blocked attention of one tile of query rows with online softmax.
///
/// Scores lie as [keys, rows]: rows along the lanes, so maxima and sums over keys need no operation across
/// lanes. They are in units of log2: q is scaled by softmax_scale * log2(e) beforehand.
/// @source Dao 2023, arXiv:2307.08691, algorithm 1
#pragma once

#include <cstdint>

#include "kernels/cpu/packing.hpp"
#include "kernels/cpu/product.hpp"
#include "kernels/cpu/tile_functions.hpp"
#include "kernels/cpu/tile_keys.hpp"
#include "kernels/cpu/vectors.hpp"

namespace hcp::tile {

inline constexpr float log2_e = 1.44269504F;
inline constexpr float infinity = __builtin_inff();

template <typename Isa>
struct ForwardWorkspace {
  alignas(64) float q_columns[tile_rows * max_head_dim];  ///< scaled, as pack_transposed
  alignas(64) float keys[tile_keys * dim_stride];
  alignas(64) float value_panels[tile_keys * max_head_dim];
  alignas(64) float scores[tile_keys * score_stride];  ///< then exp2(score - maximum)
  alignas(64) float out[tile_rows * dim_stride];       ///< not yet divided by `sum`
  alignas(64) float staging[tile_rows * dim_stride];
  alignas(64) float maximum[tile_rows];  ///< of the scores seen, in units of log2
  alignas(64) float sum[tile_rows];      ///< of exp2(score - maximum)
  alignas(64) float factor[tile_rows];   ///< by which the last visit scaled out and sum
  TileKeys<Isa> row_keys;
};
static_assert(tile_keys <= tile_rows, "staging holds a tile of either");

template <typename Isa>
void begin_forward(const ForwardTile& tile, std::byte* memory) {
  auto& work = *reinterpret_cast<ForwardWorkspace<Isa>*>(memory);
  const TileShape& shape = tile.shape;
  work.row_keys.load(shape);
  pack_rows<Isa>(tile.q, shape.rows, shape.dim_qk, work.staging);
  pack_transposed<Isa>(work.staging, shape.rows, shape.dim_qk, shape.softmax_scale * log2_e, work.q_columns);
  for (int row = 0; row < tile_rows; ++row) {
    const bool fresh = row >= shape.rows || tile.max.data[row * tile.max.stride] == -infinity;
    work.maximum[row] = fresh ? -infinity : tile.max.data[row * tile.max.stride];
    work.sum[row] = fresh ? 0.0F : tile.sum.data[row * tile.sum.stride];
    float* out = work.out + row * dim_stride;
    if (fresh) {
      __builtin_memset(out, 0, dim_stride * sizeof(float));
    } else {
      __builtin_memset(out + shape.dim_v, 0,
                       static_cast<std::size_t>(dim_stride - shape.dim_v) * sizeof(float));
      __builtin_memcpy(out, tile.out.data + row * tile.out.stride,
                       static_cast<std::size_t>(shape.dim_v) * sizeof(float));
    }
  }
}

/// scores[key, row] = -inf where the row does not see the key.
template <typename Isa>
inline void mask_scores(const TileKeys<Isa>& row_keys, const KeyRun& keys, const PanelRun<Isa>& run, int row,
                        float* scores) {
  for (int key = run.begin; key < run.end; ++key) {
    float* score = scores + key * score_stride + row;
    Floats<Isa> value;
    __builtin_memcpy(&value, score, sizeof(value));
    value = row_keys.visible(row, keys.begin + key) ? value : Floats<Isa>{} - infinity;
    __builtin_memcpy(score, &value, sizeof(value));
  }
}

/// Replaces the scores of `lanes` rows by exp2(score - new maximum) and updates maximum, sum and factor.
template <typename Isa>
inline void softmax_rows(ForwardWorkspace<Isa>& work, const PanelRun<Isa>& run, int row) {
  using Vector = Floats<Isa>;
  float* scores = work.scores + row;
  Vector before;
  __builtin_memcpy(&before, work.maximum + row, sizeof(before));
  Vector maximum = before;
  for (int key = run.begin; key < run.end; ++key) {
    Vector score;
    __builtin_memcpy(&score, scores + key * score_stride, sizeof(score));
    maximum = score > maximum ? score : maximum;
  }
  // A row that has seen nothing yet has the maximum -inf; -inf - (-inf) would be NaN.
  const Vector reference = maximum == -infinity ? Vector{} : maximum;
  const Vector factor = exp2_of<Isa>(before - reference);
  Vector visit_sum{};
  for (int key = run.begin; key < run.end; ++key) {
    Vector score;
    __builtin_memcpy(&score, scores + key * score_stride, sizeof(score));
    const Vector p = exp2_of<Isa>(score - reference);
    visit_sum += p;
    __builtin_memcpy(scores + key * score_stride, &p, sizeof(p));
  }
  Vector sum;
  __builtin_memcpy(&sum, work.sum + row, sizeof(sum));
  sum = sum * factor + visit_sum;
  __builtin_memcpy(work.sum + row, &sum, sizeof(sum));
  __builtin_memcpy(work.maximum + row, &maximum, sizeof(maximum));
  __builtin_memcpy(work.factor + row, &factor, sizeof(factor));
}

template <typename Isa>
void visit_forward(const ForwardTile& tile, const KeyRun& keys, std::byte* memory) {
  auto& work = *reinterpret_cast<ForwardWorkspace<Isa>*>(memory);
  const TileShape& shape = tile.shape;
  constexpr int width = panel_rows<Isa>;
  const int count = keys.end - keys.begin;
  pack_rows<Isa>(keys.k, count, shape.dim_qk, work.keys);
  pack_rows<Isa>(keys.v, count, shape.dim_v, work.staging);
  pack_panels<Isa, tile_keys>(work.staging, dim_stride, count, shape.dim_v, work.value_panels);
  for (int row = 0; row < shape.rows; row += width) {
    const PanelRun<Isa> run = work.row_keys.run_of(row / width, keys);
    if (run.empty()) {
      continue;
    }
    const int first = run.begin / Isa::group * Isa::group;  // whole groups of keys stay inside the buffers
    panel_product<Isa, 2, along_dims, score_stride, Update::store>(
        work.keys + first * dim_stride, work.q_columns + row * shape.dim_qk, shape.dim_qk, run.end - first,
        work.scores + first * score_stride + row, nullptr);
    for (int half = row; half < row + width; half += Isa::lanes) {
      if (!run.full) {
        mask_scores<Isa>(work.row_keys, keys, run, half, work.scores);
      }
      softmax_rows<Isa>(work, run, half);
    }
    product<Isa, across_scores, Update::rescale>(work.scores + run.begin * score_stride + row,
                                                 work.value_panels + run.begin * width, tile_keys * width,
                                                 run.end - run.begin, smaller(width, shape.rows - row),
                                                 shape.dim_v, work.out + row * dim_stride, work.factor + row);
  }
}

template <typename Isa>
void finish_forward(const ForwardTile& tile, std::byte* memory) {
  const auto& work = *reinterpret_cast<const ForwardWorkspace<Isa>*>(memory);
  const TileShape& shape = tile.shape;
  for (int row = 0; row < shape.rows; ++row) {
    const bool sees_keys = shape.row_keys[row].begin[0] < shape.row_keys[row].end[0];
    if (!sees_keys || work.sum[row] == 0.0F) {
      continue;
    }
    tile.max.data[row * tile.max.stride] = work.maximum[row];
    tile.sum.data[row * tile.sum.stride] = work.sum[row];
    __builtin_memcpy(tile.out.data + row * tile.out.stride, work.out + row * dim_stride,
                     static_cast<std::size_t>(shape.dim_v) * sizeof(float));
  }
}

}  // namespace hcp::tile
