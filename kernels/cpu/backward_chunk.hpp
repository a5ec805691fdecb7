/// What backward keeps of a chunk of keys while tiles of queries visit it: the keys packed, and their
/// gradients.
#pragma once

#include <cstdint>

#include "kernels/cpu/packing.hpp"
#include "kernels/cpu/product.hpp"
#include "kernels/cpu/tile_functions.hpp"
#include "kernels/cpu/vectors.hpp"

namespace hcp::tile {

inline constexpr int tile_stride = score_stride(tile_keys);

/// Words of a packed chunk and of its gradients: what a workspace leaves. Each chunk packs q and dout of
/// every tile again, 2 % of the work for 96 keys and 0.5 % for 384.
inline constexpr int backward_chunk_words = 320 * 1024;

template <typename Operands>
struct BackwardWorkspace {
  using Word = typename Operands::Word;
  alignas(64) Word chunk[backward_chunk_words];
  alignas(64) Word q[tile_rows * dim_stride];
  alignas(64) Word dout[tile_rows * dim_stride];
  alignas(64) Word q_panels[tile_rows / Operands::values * max_head_dim];
  alignas(64) Word dout_panels[tile_rows / Operands::values * max_head_dim];
  alignas(
      64) float probabilities[tile_rows * tile_stride];  ///< first the scores; then words, as store_in_pairs
  alignas(64) float dscores[tile_rows * tile_stride];    ///< first dP; the same; times softmax_scale
  alignas(64) float dscore_rows[Operands::values == 1 ? 1 : tile_rows * tile_stride];  ///< as store_in_order
  alignas(64) float lse[tile_rows];                    ///< in units of log2; +inf makes P of the row 0
  alignas(64) float delta[tile_rows];                  ///< times softmax_scale
  std::uint16_t numbers[Operands::values][tile_keys];  ///< of a key tile, for the dropout of a word's rows
};

/// Where the parts of a packed chunk lie.
template <typename Isa, typename Operands>
struct BackwardChunk {
  std::int64_t panel_words;  ///< of key_panels
  typename Operands::Word* key_columns;
  typename Operands::Word* value_columns;
  typename Operands::Word* key_panels;
  float* dk;  ///< [keys, dim_qk], `dk_stride` apart
  float* dv;  ///< [keys, dim_v], `dv_stride` apart
  std::int64_t dk_stride;
  std::int64_t dv_stride;

  /// Words that one key takes.
  static constexpr int words_per_key(int dim_qk, int dim_v) {
    return (dim_qk + dim_v + whole_panels<Isa>(dim_qk)) / Operands::values + gradient_stride(dim_qk) +
           gradient_stride(dim_v);
  }
  /// An odd number of cache lines.
  static constexpr int gradient_stride(int dim) { return whole_panels<Isa>(dim) + 16; }

  BackwardChunk(const KeyChunk& chunk, BackwardWorkspace<Operands>& work) {
    const int keys = whole_panels<Isa>(chunk.end - chunk.begin);
    panel_words = keys / Operands::values * panel_width<Isa>;
    key_columns = work.chunk;
    value_columns = key_columns + keys * (chunk.dim_qk / Operands::values);
    key_panels = value_columns + keys * (chunk.dim_v / Operands::values);
    dk = reinterpret_cast<float*>(key_panels + keys / Operands::values * whole_panels<Isa>(chunk.dim_qk));
    dk_stride = gradient_stride(chunk.dim_qk);
    dv_stride = gradient_stride(chunk.dim_v);
    dv = dk + keys * dk_stride;
  }
};

template <typename Isa, typename Operands>
std::int32_t backward_chunk_keys(int dim_qk, int dim_v) {
  const int keys = backward_chunk_words / BackwardChunk<Isa, Operands>::words_per_key(dim_qk, dim_v);
  return keys / tile_keys * tile_keys;
}

template <typename Isa, typename Operands>
void begin_backward_chunk(const KeyChunk& chunk, std::byte* memory) {
  auto& work = *reinterpret_cast<BackwardWorkspace<Operands>*>(memory);
  const BackwardChunk<Isa, Operands> packed{chunk, work};
  const int count = chunk.end - chunk.begin;
  pack_columns<Isa, Operands>(chunk.k, count, chunk.dim_qk, packed.key_columns);
  pack_columns<Isa, Operands>(chunk.v, count, chunk.dim_v, packed.value_columns);
  pack_panels<Isa, Operands>(chunk.k, count, chunk.dim_qk, packed.panel_words, packed.key_panels);
  __builtin_memset(packed.dk, 0, static_cast<std::size_t>(count * packed.dk_stride) * sizeof(float));
  __builtin_memset(packed.dv, 0, static_cast<std::size_t>(count * packed.dv_stride) * sizeof(float));
}

template <typename Isa>
inline void add_sums(const float* source, std::int64_t stride, int rows, int dim, const HeadSums& target) {
  for (int row = 0; row < rows; ++row) {
    float* to = target.data + row * target.stride;
    const float* from = source + row * stride;
    for (int i = 0; i < dim; ++i) {
      to[i] += from[i];
    }
  }
}

template <typename Isa, typename Operands>
void finish_backward_chunk(const KeyChunk& chunk, const HeadSums& dk, const HeadSums& dv, std::byte* memory) {
  auto& work = *reinterpret_cast<BackwardWorkspace<Operands>*>(memory);
  const BackwardChunk<Isa, Operands> packed{chunk, work};
  add_sums<Isa>(packed.dk, packed.dk_stride, chunk.end - chunk.begin, chunk.dim_qk, dk);
  add_sums<Isa>(packed.dv, packed.dv_stride, chunk.end - chunk.begin, chunk.dim_v, dv);
}

}  // namespace hcp::tile
