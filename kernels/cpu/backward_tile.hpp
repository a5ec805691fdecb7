/// Gradients of one tile of query rows and of the keys it visits.
///
/// Scores, and what replaces them, lie as [rows, keys]. Sums over the rows of a tile are formed apart and
/// then added to dk and dv, sums over the keys of a visit apart and then added to dq: so the errors of long
/// sums do not grow with their length, and the bits do not depend on which visits share a chunk.
/// @source Dao 2023, arXiv:2307.08691, algorithm 2
#pragma once

#include <cstdint>

#include "kernels/cpu/backward_chunk.hpp"
#include "kernels/cpu/dropout_rows.hpp"
#include "kernels/cpu/packing.hpp"
#include "kernels/cpu/product.hpp"
#include "kernels/cpu/scores.hpp"
#include "kernels/cpu/tile_functions.hpp"
#include "kernels/cpu/tile_keys.hpp"
#include "kernels/cpu/vectors.hpp"

namespace hcp::tile {

template <typename Isa, typename Operands>
void load_tile(const BackwardTile& tile, const KeyChunk& chunk, BackwardWorkspace<Operands>& work) {
  const RowsShape& shape = tile.shape;
  constexpr std::int64_t panel_words = tile_rows / Operands::values * panel_width<Isa>;
  pack_rows<Isa, Operands>(tile.q, 0, shape.rows, chunk.dim_qk, work.q);
  pack_rows<Isa, Operands>(tile.dout, 0, shape.rows, chunk.dim_v, work.dout);
  pack_panels<Isa, Operands>(tile.q, shape.rows, chunk.dim_qk, panel_words, work.q_panels);
  pack_panels<Isa, Operands>(tile.dout, shape.rows, chunk.dim_v, panel_words, work.dout_panels);
  for (int row = 0; row < shape.rows; ++row) {
    const float lse = tile.lse[row * tile.row_stride];
    const bool live = lse != -infinity;
    work.lse[row] = live ? lse * log2_e : infinity;
    work.delta[row] = live ? tile.delta[row * tile.row_stride] * shape.softmax_scale : 0.0F;
  }
}

/// Puts two vectors of each of `values` rows that follow each other where the scores of the first of them
/// were, as words with steps along the rows.
template <typename Isa, typename Operands>
[[gnu::always_inline]] inline void store_in_pairs(float* row, int key,
                                                  const Floats<Isa> (&values)[Operands::values][2]) {
  for (int i = 0; i < 2; ++i) {
    if constexpr (Operands::values == 1) {
      store(row + key + i * Isa::lanes, values[0][i]);
    } else {
      store(row + key + i * Isa::lanes, Isa::pair(values[0][i], values[1][i]));
    }
  }
}

/// From scores and dP to P and dS of as many rows as a word has values; 0 where a row does not see the key.
/// Dropout is that of P in dv, and of dP in dS.
template <typename Isa, typename Operands, bool dropping>
inline void differentiate_rows(const RowsShape& shape, const GroupRun& run, int tile_begin, int row,
                               BackwardWorkspace<Operands>& work) {
  using Vector = Floats<Isa>;
  constexpr int rows = Operands::values;
  constexpr int width = panel_width<Isa>;
  float* p_at = work.probabilities + row * tile_stride;
  float* ds_at = work.dscores + row * tile_stride;
  float lse[rows];
  float delta[rows];
  RowMask<Isa> masks[rows];
  RowDropout<Isa, dropping> dropouts[rows];
  for (int r = 0; r < rows; ++r) {
    const bool real = row + r < shape.rows;  // the last row may lack the one that completes its words
    lse[r] = real ? work.lse[row + r] : infinity;
    delta[r] = real ? work.delta[row + r] : 0.0F;
    masks[r] = RowMask<Isa>{real ? shape.row_keys[row + r] : RowKeys{}, tile_begin};
    if constexpr (dropping) {
      dropouts[r] = {work.numbers[r], shape.dropout->threshold, shape.dropout->scale};
      if (real) {
        RowNumbers<Isa>{*shape.dropout, row + r}.draw(shape.row_keys[row + r], tile_begin,
                                                      tile_begin + run.end, work.numbers[r]);
      }
    }
  }
  for (int key = run.begin / width * width; key < run.end; key += width) {
    Vector p[rows][2];
    Vector ds[rows][2];
    for (int r = 0; r < rows; ++r) {
      const bool whole = masks[r].sees_panel(key);
      for (int i = 0; i < 2; ++i) {
        const int at = key + i * Isa::lanes;
        Vector dp = load<Vector>(ds_at + r * tile_stride + at);
        p[r][i] = exp2_of<Isa>(load<Vector>(p_at + r * tile_stride + at) - lse[r]);
        if (!whole) {
          const Ints<Isa> seen = masks[r].lanes_from(at);
          p[r][i] = seen ? p[r][i] : Vector{};
          dp = seen ? dp : Vector{};
        }
        Vector dropped_p = p[r][i];
        dropouts[r].apply(at, dropped_p, dp);
        ds[r][i] = p[r][i] * (dp - delta[r]);
        p[r][i] = dropped_p;
      }
    }
    store_in_pairs<Isa, Operands>(p_at, key, p);
    store_in_pairs<Isa, Operands>(ds_at, key, ds);
    if constexpr (Operands::values > 1) {
      for (int r = 0; r < rows; ++r) {
        store_in_order<Isa, Operands>(work.dscore_rows + (row + r) * tile_stride, key, ds[r]);
      }
    }
  }
}

/// Words of keys that the visit meets, but not the group: 0, for sums over several groups.
template <typename Isa, typename Operands>
inline void clear_unseen(const VisitRuns<Isa>& visit, int first_row, int rows, const GroupRun& run,
                         BackwardWorkspace<Operands>& work) {
  constexpr int width = panel_width<Isa>;
  constexpr int keys = group_rows;  // key_products takes as many at a time
  const int begin = visit.begin / keys * keys;
  const int end = (visit.end + keys - 1) / keys * keys;
  const int run_begin = run.empty() ? end : run.begin / width * width;
  const int run_end = run.empty() ? end : (run.end + width - 1) / width * width;
  for (int row = first_row; row < first_row + rows; row += Operands::values) {
    for (float* words : {work.probabilities + row * tile_stride, work.dscores + row * tile_stride}) {
      for (int key = begin; key < run_begin; ++key) {
        words[key] = 0.0F;
      }
      for (int key = run_end; key < end; ++key) {
        words[key] = 0.0F;
      }
    }
  }
}

/// P, dS and the share of dq of one group of rows.
template <typename Isa, typename Operands, bool dropping>
void backward_group(const BackwardTile& tile, const KeyChunk& chunk,
                    const BackwardChunk<Isa, Operands>& packed, const VisitRuns<Isa>& visit, int group,
                    BackwardWorkspace<Operands>& work) {
  const RowsShape& shape = tile.shape;
  const GroupRun& run = visit.runs[group];
  const int first_key = visit.tile_begin - chunk.begin;
  const int first_row = group * group_rows;
  const int rows = smaller(shape.rows - first_row, group_rows);
  clear_unseen(visit, first_row, rows, run, work);
  if (run.empty()) {
    return;
  }
  const int scores = first_row * tile_stride;
  score_products<Isa, Operands, tile_stride>(
      work.q + first_row * dim_stride, packed.key_columns + first_key * (chunk.dim_qk / Operands::values),
      chunk.dim_qk, rows, run, shape.softmax_scale * log2_e, work.probabilities + scores);
  score_products<Isa, Operands, tile_stride>(
      work.dout + first_row * dim_stride, packed.value_columns + first_key * (chunk.dim_v / Operands::values),
      chunk.dim_v, rows, run, shape.softmax_scale, work.dscores + scores);
  for (int row = first_row; row < first_row + rows; row += Operands::values) {
    differentiate_rows<Isa, Operands, dropping>(shape, run, visit.tile_begin, row, work);
  }
  const float* weights = Operands::values == 1 ? work.dscores : work.dscore_rows;
  row_products<Isa, Operands, tile_stride, Update::accumulate>(
      weights + scores, packed.key_panels + first_key / Operands::values * panel_width<Isa>,
      packed.panel_words, chunk.dim_qk, rows, run, tile.dq.data + first_row * tile.dq.stride, tile.dq.stride);
}

/// c[key, column] += sum over the rows that see the key of weights[row, key] panels[row, column].
/// @param weights as store_in_pairs leaves them
/// @param panels as pack_panels of the tile's rows
/// @param c [keys of the key tile, columns], `dim_stride` apart
template <typename Isa, typename Operands>
void key_products(const float* weights, const typename Operands::Word* panels, int columns, int row_count,
                  const VisitRuns<Isa>& visit, float* c, std::int64_t c_stride) {
  constexpr int width = panel_width<Isa>;
  constexpr int values = Operands::values;
  constexpr Strides across_scores{1, values * tile_stride};
  const auto* words = reinterpret_cast<const typename Operands::Word*>(weights);
  for (int column = 0; column < columns; column += width) {
    for (int key = visit.begin / group_rows * group_rows; key < visit.end; key += group_rows) {
      const int keys = smaller(group_rows, visit.end - key);
      const GroupSpan groups = visit.groups_that_meet(key, key + keys);
      const int first_row = groups.first * group_rows;
      const int rows = smaller(row_count, groups.last * group_rows) - first_row;
      const auto* a = words + first_row * tile_stride + key;
      const auto* b = panels + first_row / values * width;
      float* to = c + key * c_stride + column;
      const int steps = (rows + values - 1) / values;
      if (column + Isa::lanes < columns) {
        group_product<Isa, Operands, 2, across_scores, Update::accumulate>(a, b, steps, keys, to, c_stride);
      } else {
        group_product<Isa, Operands, 1, across_scores, Update::accumulate>(a, b, steps, keys, to, c_stride);
      }
    }
    panels += tile_rows / values * width;
  }
}

template <typename Isa, typename Operands, bool dropping>
void backward_visits(const BackwardTile& tile, const KeyChunk& chunk, std::byte* memory) {
  auto& work = *reinterpret_cast<BackwardWorkspace<Operands>*>(memory);
  const BackwardChunk<Isa, Operands> packed{chunk, work};
  const RowsShape& shape = tile.shape;
  load_tile<Isa>(tile, chunk, work);
  for (int index = 0; index < tile.visit_count; ++index) {
    const VisitRuns<Isa> visit{shape, tile.visits[index]};
    const int first_key = visit.tile_begin - chunk.begin;
    for (int group = 0; group < visit.groups; ++group) {
      backward_group<Isa, Operands, dropping>(tile, chunk, packed, visit, group, work);
    }
    key_products<Isa, Operands>(work.probabilities, work.dout_panels, chunk.dim_v, shape.rows, visit,
                                packed.dv + first_key * packed.dv_stride, packed.dv_stride);
    key_products<Isa, Operands>(work.dscores, work.q_panels, chunk.dim_qk, shape.rows, visit,
                                packed.dk + first_key * packed.dk_stride, packed.dk_stride);
  }
}

template <typename Isa, typename Operands>
void backward_tile(const BackwardTile& tile, const KeyChunk& chunk, std::byte* memory) {
  if (tile.shape.dropout == nullptr) {
    backward_visits<Isa, Operands, false>(tile, chunk, memory);
  } else {
    backward_visits<Isa, Operands, true>(tile, chunk, memory);
  }
}

}  // namespace hcp::tile
