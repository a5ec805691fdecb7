/// Blocked attention of rows of queries with online softmax: one group of rows, as many as a register tile
/// has, after the other.
///
/// Scores lie as [rows, keys], in units of log2: q k^T times softmax_scale * log2(e).
/// @source Dao 2023, arXiv:2307.08691, algorithm 1
#pragma once

#include <cstdint>

#include "kernels/cpu/dropout_rows.hpp"
#include "kernels/cpu/packing.hpp"
#include "kernels/cpu/product.hpp"
#include "kernels/cpu/scores.hpp"
#include "kernels/cpu/softmax.hpp"
#include "kernels/cpu/tile_functions.hpp"
#include "kernels/cpu/tile_keys.hpp"
#include "kernels/cpu/vectors.hpp"

namespace hcp::tile {

/// Keys that a group of rows visits at once, a multiple of tile_keys. Each visit reduces over the lanes of
/// every row and rescales out: with 192 keys the rate is 2 % lower, with 768 the same.
inline constexpr int visit_keys = 4 * tile_keys;
inline constexpr int visit_stride = score_stride(visit_keys);

/// Words of packed keys and values of a chunk: three quarters of a second-level cache of 1 MiB. Each chunk
/// reads q and out again: with half as many words the rate is 1 % lower for one head and 3 % for several.
inline constexpr int forward_chunk_words = 192 * 1024;

template <typename Operands>
struct ForwardWorkspace {
  using Word = typename Operands::Word;
  /// Keys as pack_columns, then values as pack_panels.
  alignas(64) Word chunk[forward_chunk_words];
  alignas(64) Word q[group_rows * dim_stride];
  /// Of one group; then exp2(score - maximum), as words.
  alignas(64) float scores[group_rows * visit_stride];
  float factor[group_rows];           ///< by which the last visit scaled out and sum
  std::uint16_t numbers[visit_keys];  ///< of the keys of a visit, for the dropout of one row
};

/// Where the parts of a packed chunk lie.
template <typename Isa, typename Operands>
struct ForwardChunk {
  std::int64_t panel_words;  ///< of the values
  typename Operands::Word* keys;
  typename Operands::Word* values;

  ForwardChunk(const KeyChunk& chunk, ForwardWorkspace<Operands>& work) {
    const int whole_keys = whole_panels<Isa>(chunk.end - chunk.begin);
    panel_words = whole_keys / Operands::values * panel_width<Isa>;
    keys = work.chunk;
    values = keys + whole_keys * (chunk.dim_qk / Operands::values);
  }
};

template <typename Isa, typename Operands>
std::int32_t forward_chunk_keys(int dim_qk, int dim_v) {
  const int keys = forward_chunk_words * Operands::values / (dim_qk + whole_panels<Isa>(dim_v));
  static_assert(forward_chunk_words >= visit_keys * 2 * max_head_dim, "one visit at least");
  return keys / visit_keys * visit_keys;
}

template <typename Isa, typename Operands>
void begin_forward_chunk(const KeyChunk& chunk, std::byte* memory) {
  auto& work = *reinterpret_cast<ForwardWorkspace<Operands>*>(memory);
  const ForwardChunk<Isa, Operands> packed{chunk, work};
  const int count = chunk.end - chunk.begin;
  pack_columns<Isa, Operands>(chunk.k, count, chunk.dim_qk, packed.keys);
  pack_panels<Isa, Operands>(chunk.v, count, chunk.dim_v, packed.panel_words, packed.values);
}

/// Rows that have seen nothing yet become 0, {-inf, 0}: what they hold does not count.
template <typename Operands>
void begin_fresh_rows(const ForwardRows& queries, int dim_v) {
  for (int row = 0; row < queries.shape.rows; ++row) {
    const bool sees_keys = queries.shape.row_keys[row].begin[0] < queries.shape.row_keys[row].end[0];
    if (sees_keys && queries.max.data[row * queries.max.stride] == -infinity) {
      queries.sum.data[row * queries.sum.stride] = 0.0F;
      __builtin_memset(queries.out.data + row * queries.out.stride, 0,
                       static_cast<std::size_t>(dim_v) * sizeof(float));
    }
  }
}

/// Dropout of one row in a visit.
template <typename Isa, bool dropping, typename Operands>
[[gnu::always_inline]] inline RowDropout<Isa, dropping> dropout_of(const RowsShape& shape,
                                                                   const GroupRun& run, int visit_begin,
                                                                   int row,
                                                                   ForwardWorkspace<Operands>& work) {
  if constexpr (dropping) {
    RowNumbers<Isa>{*shape.dropout, row}.draw(shape.row_keys[row], visit_begin, visit_begin + run.end,
                                              work.numbers);
    return {work.numbers, shape.dropout->threshold, shape.dropout->scale};
  } else {
    return {};
  }
}

/// From scores to exp2(score - new maximum) for one group of rows, and what dropout makes of that; updates
/// maximum, sum and factor.
template <typename Isa, typename Operands, bool dropping>
void softmax(const ForwardRows& queries, const GroupRun& run, int visit_begin, int first_row, int rows,
             ForwardWorkspace<Operands>& work) {
  float reference[group_rows];
  for (int row = 0; row < rows; ++row) {  // apart from the exponentials, so that the rows' chains overlap
    const RowMask<Isa> mask{queries.shape.row_keys[first_row + row], visit_begin};
    float& maximum = queries.max.data[(first_row + row) * queries.max.stride];
    const float before = maximum;
    maximum = larger(before, largest_score<Isa>(run, mask, work.scores + row * visit_stride));
    // A row that has seen nothing yet has the maximum -inf; -inf - (-inf) would be NaN.
    reference[row] = maximum == -infinity ? 0.0F : maximum;
    work.factor[row] = exp2_of<Isa>(Floats<Isa>{} + (before - reference[row]))[0];
  }
  for (int row = 0; row < rows; ++row) {
    const RowMask<Isa> mask{queries.shape.row_keys[first_row + row], visit_begin};
    float& sum = queries.sum.data[(first_row + row) * queries.sum.stride];
    const auto dropout = dropout_of<Isa, dropping>(queries.shape, run, visit_begin, first_row + row, work);
    sum = sum * work.factor[row] +
          exponentiate<Isa, Operands>(run, mask, dropout, reference[row], work.scores + row * visit_stride);
  }
}

/// Scores, softmax and the product with the values of one group of rows.
template <typename Isa, typename Operands, bool dropping>
void forward_group(const ForwardRows& queries, const KeyChunk& chunk,
                   const ForwardChunk<Isa, Operands>& packed, int visit_begin, int first_row, int rows,
                   const GroupRun& run, ForwardWorkspace<Operands>& work) {
  const int first_key = visit_begin - chunk.begin;
  score_products<Isa, Operands, visit_stride>(
      work.q, packed.keys + first_key * (chunk.dim_qk / Operands::values), chunk.dim_qk, rows, run,
      queries.shape.softmax_scale * log2_e, work.scores);
  softmax<Isa, Operands, dropping>(queries, run, visit_begin, first_row, rows, work);
  row_products<Isa, Operands, visit_stride, Update::rescale>(
      work.scores, packed.values + first_key / Operands::values * panel_width<Isa>, packed.panel_words,
      chunk.dim_v, rows, run, queries.out.data + first_row * queries.out.stride, queries.out.stride,
      work.factor);
}

template <typename Isa, typename Operands, bool dropping>
void forward_groups(const ForwardRows& queries, const KeyChunk& chunk, std::byte* memory) {
  auto& work = *reinterpret_cast<ForwardWorkspace<Operands>*>(memory);
  const ForwardChunk<Isa, Operands> packed{chunk, work};
  const RowsShape& shape = queries.shape;
  begin_fresh_rows<Operands>(queries, chunk.dim_v);
  for (int first_row = 0; first_row < shape.rows; first_row += group_rows) {
    const int last_row = smaller(shape.rows, first_row + group_rows);
    pack_rows<Isa, Operands>(queries.q, first_row, last_row - first_row, chunk.dim_qk, work.q);
    prefetch_rows(queries.q, last_row, smaller(shape.rows, last_row + group_rows), chunk.dim_qk);
    for (int begin = chunk.begin; begin < chunk.end; begin += visit_keys) {
      const int end = smaller(chunk.end, begin + visit_keys);
      const GroupRun run = run_of(shape, first_row, last_row, begin, end, begin);
      if (!run.empty()) {
        forward_group<Isa, Operands, dropping>(queries, chunk, packed, begin, first_row, last_row - first_row,
                                               run, work);
      }
    }
  }
}

template <typename Isa, typename Operands>
void forward_rows(const ForwardRows& queries, const KeyChunk& chunk, std::byte* memory) {
  if (queries.shape.dropout == nullptr) {
    forward_groups<Isa, Operands, false>(queries, chunk, memory);
  } else {
    forward_groups<Isa, Operands, true>(queries, chunk, memory);
  }
}

}  // namespace hcp::tile
