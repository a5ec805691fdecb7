/// Gradients of one tile of query rows and of the keys it visits.
///
/// P and dS lie as [keys, rows], like the scores of the forward pass. The share of dk and dv of one visit is
/// summed apart and added afterwards, so that the errors of long sums do not grow with the rows of a tile.
/// @source Dao 2023, arXiv:2307.08691, algorithm 2
#pragma once

#include <cstdint>

#include "kernels/cpu/forward_tile.hpp"
#include "kernels/cpu/packing.hpp"
#include "kernels/cpu/product.hpp"
#include "kernels/cpu/tile_functions.hpp"
#include "kernels/cpu/tile_keys.hpp"
#include "kernels/cpu/vectors.hpp"

namespace hcp::tile {

template <typename Isa>
struct BackwardWorkspace {
  alignas(64) float q_columns[tile_rows * max_head_dim];  ///< scaled, as pack_transposed
  alignas(64) float q_panels[tile_rows * max_head_dim];
  alignas(64) float dout_columns[tile_rows * max_head_dim];
  alignas(64) float dout_panels[tile_rows * max_head_dim];
  alignas(64) float keys[tile_keys * dim_stride];
  alignas(64) float key_panels[tile_keys * max_head_dim];
  alignas(64) float values[tile_keys * dim_stride];
  alignas(64) float probabilities[tile_keys * score_stride];  ///< first the scores
  alignas(64) float dscores[tile_keys * score_stride];        ///< first dP; with softmax_scale in it
  alignas(64) float dq[tile_rows * dim_stride];
  alignas(64) float dk[tile_keys * dim_stride];  ///< share of the last visit
  alignas(64) float dv[tile_keys * dim_stride];  ///< share of the last visit
  alignas(64) float staging[tile_rows * dim_stride];
  alignas(64) float lse[tile_rows];    ///< in units of log2; +inf makes P of the row 0
  alignas(64) float delta[tile_rows];  ///< times softmax_scale
  TileKeys<Isa> row_keys;
};

template <typename Isa>
void begin_backward(const BackwardTile& tile, std::byte* memory) {
  auto& work = *reinterpret_cast<BackwardWorkspace<Isa>*>(memory);
  const TileShape& shape = tile.shape;
  work.row_keys.load(shape);
  pack_rows<Isa>(tile.q, shape.rows, shape.dim_qk, work.staging);
  pack_transposed<Isa>(work.staging, shape.rows, shape.dim_qk, shape.softmax_scale * log2_e, work.q_columns);
  pack_panels<Isa, tile_rows>(work.staging, dim_stride, shape.rows, shape.dim_qk, work.q_panels);
  pack_rows<Isa>(tile.dout, shape.rows, shape.dim_v, work.staging);
  pack_transposed<Isa>(work.staging, shape.rows, shape.dim_v, 1.0F, work.dout_columns);
  pack_panels<Isa, tile_rows>(work.staging, dim_stride, shape.rows, shape.dim_v, work.dout_panels);
  for (int row = 0; row < tile_rows; ++row) {
    const bool live = row < shape.rows && tile.lse[row * tile.row_stride] != -infinity;
    work.lse[row] = live ? tile.lse[row * tile.row_stride] * log2_e : infinity;
    work.delta[row] = live ? tile.delta[row * tile.row_stride] * shape.softmax_scale : 0.0F;
  }
  __builtin_memset(work.dq, 0, sizeof(work.dq));
}

/// From scores and dP of `lanes` rows to P and dS, 0 where the row does not see the key.
template <typename Isa, bool masked>
inline void differentiate_rows(BackwardWorkspace<Isa>& work, const KeyRun& keys, const PanelRun<Isa>& run,
                               float softmax_scale, int row) {
  using Vector = Floats<Isa>;
  Vector lse;
  Vector delta;
  __builtin_memcpy(&lse, work.lse + row, sizeof(lse));
  __builtin_memcpy(&delta, work.delta + row, sizeof(delta));
  for (int key = run.begin; key < run.end; ++key) {
    float* p_at = work.probabilities + key * score_stride + row;
    float* ds_at = work.dscores + key * score_stride + row;
    Vector score;
    Vector dp;
    __builtin_memcpy(&score, p_at, sizeof(score));
    __builtin_memcpy(&dp, ds_at, sizeof(dp));
    if constexpr (masked) {
      score = work.row_keys.visible(row, keys.begin + key) ? score : Vector{} - infinity;
    }
    const Vector p = exp2_of<Isa>(score - lse);
    const Vector ds = p * (dp * softmax_scale - delta);
    __builtin_memcpy(p_at, &p, sizeof(p));
    __builtin_memcpy(ds_at, &ds, sizeof(ds));
  }
}

/// P = dS = 0 for keys [begin, end) of one panel.
template <typename Isa>
inline void clear_panel(BackwardWorkspace<Isa>& work, int begin, int end, int row) {
  for (int key = begin; key < end; ++key) {
    __builtin_memset(work.probabilities + key * score_stride + row, 0, panel_rows<Isa> * sizeof(float));
    __builtin_memset(work.dscores + key * score_stride + row, 0, panel_rows<Isa> * sizeof(float));
  }
}

/// P, dS and the share of dq of the panel that begins at `row`.
template <typename Isa>
void visit_panel(const BackwardTile& tile, const KeyRun& keys, const PanelRun<Isa>& run, int row,
                 BackwardWorkspace<Isa>& work) {
  const TileShape& shape = tile.shape;
  constexpr int width = panel_rows<Isa>;
  const int first = run.begin / Isa::group * Isa::group;  // whole groups of keys stay inside the buffers
  panel_product<Isa, 2, along_dims, score_stride, Update::store>(
      work.keys + first * dim_stride, work.q_columns + row * shape.dim_qk, shape.dim_qk, run.end - first,
      work.probabilities + first * score_stride + row, nullptr);
  panel_product<Isa, 2, along_dims, score_stride, Update::store>(
      work.values + first * dim_stride, work.dout_columns + row * shape.dim_v, shape.dim_v, run.end - first,
      work.dscores + first * score_stride + row, nullptr);
  for (int half = row; half < row + width; half += Isa::lanes) {
    if (run.full) {
      differentiate_rows<Isa, false>(work, keys, run, shape.softmax_scale, half);
    } else {
      differentiate_rows<Isa, true>(work, keys, run, shape.softmax_scale, half);
    }
  }
  product<Isa, across_scores, Update::accumulate>(
      work.dscores + run.begin * score_stride + row, work.key_panels + run.begin * width, tile_keys * width,
      run.end - run.begin, smaller(width, shape.rows - row), shape.dim_qk, work.dq + row * dim_stride);
}

template <typename Isa>
void visit_backward(const BackwardTile& tile, const KeyRun& keys, std::byte* memory) {
  auto& work = *reinterpret_cast<BackwardWorkspace<Isa>*>(memory);
  const TileShape& shape = tile.shape;
  constexpr int width = panel_rows<Isa>;
  const int count = keys.end - keys.begin;
  pack_rows<Isa>(keys.k, count, shape.dim_qk, work.keys);
  pack_rows<Isa>(keys.v, count, shape.dim_v, work.values);
  pack_panels<Isa, tile_keys>(work.keys, dim_stride, count, shape.dim_qk, work.key_panels);

  int first_row = shape.rows;
  int last_row = 0;
  for (int row = 0; row < shape.rows; row += width) {
    if (!work.row_keys.run_of(row / width, keys).empty()) {
      first_row = smaller(first_row, row);
      last_row = smaller(row + width, shape.rows);
    }
  }
  for (int row = first_row; row < last_row; row += width) {
    const PanelRun<Isa> run = work.row_keys.run_of(row / width, keys);
    if (run.empty()) {
      clear_panel<Isa>(work, 0, count, row);
      continue;
    }
    visit_panel<Isa>(tile, keys, run, row, work);
    clear_panel<Isa>(work, 0, run.begin, row);
    clear_panel<Isa>(work, run.end, count, row);
  }
  product<Isa, along_scores, Update::store>(work.dscores + first_row, work.q_panels + first_row * width,
                                            tile_rows * width, larger(last_row - first_row, 0), count,
                                            shape.dim_qk, work.dk);
  product<Isa, along_scores, Update::store>(work.probabilities + first_row,
                                            work.dout_panels + first_row * width, tile_rows * width,
                                            larger(last_row - first_row, 0), count, shape.dim_v, work.dv);
}

template <typename Isa>
inline void add_sums(const float* source, int rows, int dim, const HeadSums& target) {
  for (int row = 0; row < rows; ++row) {
    float* to = target.data + row * target.stride;
    const float* from = source + row * dim_stride;
    for (int i = 0; i < dim; ++i) {
      to[i] += from[i];
    }
  }
}

template <typename Isa>
void add_key_gradients(const BackwardTile& tile, const KeyRun& keys, const std::byte* memory,
                       const HeadSums& dk, const HeadSums& dv) {
  const auto& work = *reinterpret_cast<const BackwardWorkspace<Isa>*>(memory);
  add_sums<Isa>(work.dk, keys.end - keys.begin, tile.shape.dim_qk, dk);
  add_sums<Isa>(work.dv, keys.end - keys.begin, tile.shape.dim_v, dv);
}

template <typename Isa>
void finish_backward(const BackwardTile& tile, std::byte* memory) {
  const auto& work = *reinterpret_cast<const BackwardWorkspace<Isa>*>(memory);
  add_sums<Isa>(work.dq, tile.shape.rows, tile.shape.dim_qk, tile.dq);
}

}  // namespace hcp::tile
