/// The arithmetic of one tile of query rows, once per instruction set.
///
/// A tile is at most `tile_rows` consecutive query rows of one head; it visits the keys of a block in runs of
/// at most `tile_keys`. Who visits what and in which order is decided outside (cpu_attention_kernel.cpp), so
/// the functions here know neither threads nor masks, only key intervals per row.
///
/// Everything that crosses this boundary is plain data: the translation units behind it are compiled for
/// instruction sets that the rest of the program may not use, so they share no inline function with it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/data_type.hpp"

namespace hcp {

inline constexpr int tile_rows = 96;      ///< query rows of a tile, at most
inline constexpr int tile_keys = 96;      ///< keys of a visit, at most
inline constexpr int max_head_dim = 256;  ///< head dims are multiples of 8 up to this

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

/// The two intervals [begin, end) of key rows of the block that one query row sees; empty ones are {0, 0},
/// and an empty first one has an empty second one.
struct RowKeys {
  std::int32_t begin[2];
  std::int32_t end[2];
};

/// What forward and backward know of a tile.
struct TileShape {
  int rows = 0;
  int dim_qk = 0;
  int dim_v = 0;
  float softmax_scale = 1.0F;
  const RowKeys* row_keys = nullptr;  ///< [rows]
};

/// Key rows [begin, end) of the block; k and v begin at row `begin`.
struct KeyRun {
  std::int32_t begin = 0;
  std::int32_t end = 0;
  HeadRows k;
  HeadRows v;
};

struct ForwardTile {
  TileShape shape;
  HeadRows q;
  HeadSums out;  ///< as RunningOutput::out
  HeadSums max;  ///< as RunningOutput::max
  HeadSums sum;  ///< as RunningOutput::sum
};

struct BackwardTile {
  TileShape shape;
  HeadRows q;
  HeadRows dout;
  const float* lse = nullptr;    ///< one every `row_stride`
  const float* delta = nullptr;  ///< one every `row_stride`
  std::int64_t row_stride = 0;
  HeadSums dq;  ///< added to
};

/// One instruction set. A workspace is `..._workspace_bytes` of memory aligned to 64, owned by one thread
/// from begin_... to finish_...; what lies in it in between is the implementation's business.
struct TileFunctions {
  const char* instruction_set;

  std::size_t forward_workspace_bytes;
  void (*begin_forward)(const ForwardTile& tile, std::byte* workspace);
  void (*visit_forward)(const ForwardTile& tile, const KeyRun& keys, std::byte* workspace);
  /// Rows that see no key keep their bits.
  void (*finish_forward)(const ForwardTile& tile, std::byte* workspace);

  std::size_t backward_workspace_bytes;
  void (*begin_backward)(const BackwardTile& tile, std::byte* workspace);
  /// Computes the visit's share of dk and dv inside the workspace.
  void (*visit_backward)(const BackwardTile& tile, const KeyRun& keys, std::byte* workspace);
  /// Adds the share of the last visit; dk and dv begin at the visit's first key.
  void (*add_key_gradients)(const BackwardTile& tile, const KeyRun& keys, const std::byte* workspace,
                            const HeadSums& dk, const HeadSums& dv);
  void (*finish_backward)(const BackwardTile& tile, std::byte* workspace);

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

}  // namespace hcp
