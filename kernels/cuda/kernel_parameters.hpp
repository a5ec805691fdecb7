/// What crosses from the host to the attention kernels on a device: plain data, all pointers to device
/// memory.
///
/// A block of a launch owns a tile of rows and one head, and walks through the tiles that it visits: query
/// tiles walk through key tiles in forward and for dq, key tiles walk through query tiles for dk and dv. So
/// nothing is added to by two blocks, and the bits do not depend on timing.
#pragma once

#include <cstdint>

#include "kernels/dropout.hpp"
#include "kernels/query_rows.hpp"

namespace hcp::cuda {

/// The tile of one block: rows [tile * T, (tile + 1) * T) of those that own, and its visits [begin, end).
struct TileWork {
  std::int32_t tile = 0;
  std::int32_t begin = 0;
  std::int32_t end = 0;
};

/// A visit of one tile of the other side.
struct TileVisit {
  std::int32_t tile : 31 = 0;
  std::uint32_t full : 1 = 0;  ///< every pair of the two tiles is visible: nothing to mask
};

/// The launch's x dimension is the number of `work`, most work first.
struct TileSchedule {
  const TileWork* work = nullptr;
  const TileVisit* visits = nullptr;
};

/// Sizes of a block of attention. Tensors are contiguous, [rows, heads_q, ·] of queries and [keys, heads_kv,
/// ·] of keys.
struct BlockShape {
  std::int32_t rows = 0;
  std::int32_t keys = 0;
  std::int32_t heads_q = 0;
  std::int32_t heads_kv = 0;
  std::int32_t dim_qk = 0;
  std::int32_t dim_v = 0;
  std::int32_t first_query_head = 0;  ///< as HeadMap
  std::int32_t first_kv_head = 0;     ///< as HeadMap
  std::int32_t queries_per_kv = 1;    ///< as HeadMap
  float softmax_scale = 1.0F;
  const RowKeys* row_keys = nullptr;  ///< [rows]
};

/// What is dropped; kernels without dropout do not look at it.
struct DropoutTable {
  const DropoutQuery* rows = nullptr;            ///< [rows]
  const DropoutStream* streams = nullptr;        ///< [heads_q, documents]
  const std::uint32_t* key_positions = nullptr;  ///< [keys], modulo 2^32
  std::int32_t documents = 0;
  std::int32_t threshold = 0;  ///< as Dropout::threshold
  float scale = 1.0F;          ///< as Dropout::scale
};

/// As AttentionKernel::forward_block. Launched over (work, heads_q).
struct ForwardParameters {
  BlockShape shape;
  TileSchedule schedule;  ///< of query tiles over key tiles
  DropoutTable dropout;
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  float* out = nullptr;  ///< as RunningOutput
  float* max = nullptr;
  float* sum = nullptr;
};

/// As AttentionKernel::backward_block. dq is launched over (work, heads_q) with query tiles over key tiles,
/// dk and dv over (work, heads_kv) with key tiles over query tiles.
struct BackwardParameters {
  BlockShape shape;
  TileSchedule schedule;
  DropoutTable dropout;
  const void* q = nullptr;
  const void* k = nullptr;
  const void* v = nullptr;
  const void* dout = nullptr;
  const float* lse = nullptr;
  const float* delta = nullptr;
  float* dq = nullptr;
  float* dk = nullptr;
  float* dv = nullptr;
};

}  // namespace hcp::cuda
