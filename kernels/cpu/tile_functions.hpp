/// The arithmetic of one tile of query rows, once per instruction set.
///
/// A tile is at most `tile_rows` consecutive query rows of one head. The keys of a block are packed in
/// chunks, each once for all tiles and heads that visit it. Who visits what and in which order is decided
/// outside (cpu_attention_kernel.cpp), so the functions here know neither threads nor masks, only key
/// intervals per row.
///
/// Everything that crosses this boundary is plain data: the translation units behind it are compiled for
/// instruction sets that the rest of the program may not use, so they share no inline function with it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/data_type.hpp"
#include "kernels/dropout.hpp"
#include "kernels/query_rows.hpp"

namespace hcp {

/// 96 is a multiple of every register tile and panel. Backward with 192 keys is as fast; fewer keys leave
/// more chunks to share out over threads.
inline constexpr int tile_rows = 96;  ///< query rows of a tile, at most
inline constexpr int tile_keys = 96;  ///< keys of a tile, at most; a chunk is several of them

/// Rows of one head of a [rows, heads, dim] tensor: row r begins `r * stride` elements after `data`.
struct HeadRows {
  const std::byte* data = nullptr;
  DataType type = DataType::fp32;
  std::int64_t stride = 0;
};

/// The same for fp32 values that are written.
struct HeadSums {
  float* data = nullptr;
  std::int64_t stride = 0;
};

/// Key rows [begin, end) of the block that a query tile sees of one key tile, that is of one of
/// [i * tile_keys, (i + 1) * tile_keys).
struct KeyVisit {
  std::int32_t begin = 0;
  std::int32_t end = 0;
};

/// Key rows [begin, end) of the block, `begin` a multiple of tile_keys; k and v begin at row `begin`.
struct KeyChunk {
  std::int32_t begin = 0;
  std::int32_t end = 0;
  HeadRows k;
  HeadRows v;
  int dim_qk = 0;
  int dim_v = 0;
};

/// Key rows of the block from `begin` to the next stretch, whose global positions follow each other.
struct KeyStretch {
  std::int32_t begin = 0;
  std::uint32_t position = 0;  ///< of the first one, modulo 2^32
};

/// What is dropped in rows of one head.
struct RowsDropout {
  const DropoutQuery* queries = nullptr;   ///< [rows]
  const DropoutStream* streams = nullptr;  ///< [documents of the block]
  const KeyStretch* stretches = nullptr;   ///< [stretch_count], ascending, the first from key row 0
  int stretch_count = 0;
  std::int32_t threshold = 0;  ///< as Dropout::threshold
  float scale = 1.0F;          ///< as Dropout::scale
};

/// What forward and backward know of rows of queries.
struct RowsShape {
  int rows = 0;
  float softmax_scale = 1.0F;
  const RowKeys* row_keys = nullptr;     ///< [rows]
  const RowsDropout* dropout = nullptr;  ///< null: nothing is dropped
};

struct ForwardRows {
  RowsShape shape;
  HeadRows q;
  HeadSums out;  ///< as RunningOutput::out
  HeadSums max;  ///< as RunningOutput::max
  HeadSums sum;  ///< as RunningOutput::sum
};

struct BackwardTile {
  RowsShape shape;
  HeadRows q;
  HeadRows dout;
  const float* lse = nullptr;    ///< one every `row_stride`
  const float* delta = nullptr;  ///< one every `row_stride`
  std::int64_t row_stride = 0;
  HeadSums dq;                       ///< added to
  const KeyVisit* visits = nullptr;  ///< [visit_count] inside the chunk, ascending
  int visit_count = 0;
};

/// One way to multiply. A workspace (workspaces.hpp) is owned by one thread while it works on one chunk; what
/// lies in it is the implementation's business.
struct AttentionFunctions {
  /// Keys of a chunk at most, a multiple of tile_keys: what fits into a workspace.
  std::int32_t (*forward_chunk_keys)(int dim_qk, int dim_v);
  void (*begin_forward_chunk)(const KeyChunk& chunk, std::byte* workspace);
  /// Folds the keys of the chunk into the rows. Rows that see no key of the block keep their values.
  void (*forward_rows)(const ForwardRows& tile, const KeyChunk& chunk, std::byte* workspace);

  std::int32_t (*backward_chunk_keys)(int dim_qk, int dim_v);
  void (*begin_backward_chunk)(const KeyChunk& chunk, std::byte* workspace);
  /// Adds to dq of the tile, and to dk and dv of the chunk in the workspace.
  void (*backward_tile)(const BackwardTile& tile, const KeyChunk& chunk, std::byte* workspace);
  /// Adds what came together in the workspace; dk and dv begin at the chunk's first key.
  void (*finish_backward_chunk)(const KeyChunk& chunk, const HeadSums& dk, const HeadSums& dv,
                                std::byte* workspace);
};

/// One instruction set.
struct TileFunctions {
  const char* instruction_set;
  AttentionFunctions fp32;  ///< products of fp32 values, for every storage type
  AttentionFunctions bf16;  ///< for bf16 storage
  bool multiplies_bf16;     ///< whether `bf16` multiplies bf16 values as such, not widened to fp32

  /// Runs `steps` times `fma_flops_per_step` floating-point operations of independent fused multiply-adds in
  /// registers (multiplications and additions where there are no fused ones).
  /// @return a value that depends on all of them
  float (*fma_loop)(std::int64_t steps);
  std::int64_t fma_flops_per_step;
};

/// For every processor that runs the program.
[[nodiscard]] const TileFunctions& portable_tile_functions();
/// x86-64 with AVX2 and FMA.
[[nodiscard]] const TileFunctions& avx2_tile_functions();
/// x86-64 with AVX-512 F, BW, DQ, VL.
[[nodiscard]] const TileFunctions& avx512_tile_functions();
/// The same with AVX-512 BF16.
[[nodiscard]] const TileFunctions& avx512_bf16_tile_functions();

}  // namespace hcp
