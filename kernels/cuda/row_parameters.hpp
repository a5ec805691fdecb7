/// What crosses from the host to the kernels on rows: plain data, all pointers to device memory. Each struct
/// is the only parameter of the kernel of that name in row_kernels.cuh; the contracts are those of
/// AttentionKernel.
///
/// A unit of work is what KernelEntry::own_rows counts. Any number of blocks does all of it, and the bits do
/// not depend on how many they are.
#pragma once

#include <cstdint>

namespace hcp::cuda {

/// A unit is a row of one head.
struct FinishForwardParameters {
  float* out = nullptr;  ///< [rows, dim_v]
  const float* max = nullptr;
  const float* sum = nullptr;
  const float* sinks = nullptr;  ///< [heads], or null
  float* lse = nullptr;          ///< may be max
  std::int64_t rows = 0;         ///< times heads
  std::int32_t heads = 0;
  std::int32_t dim_v = 0;
};

/// A unit is a head.
struct MaxLogitsParameters {
  const float* max = nullptr;  ///< [rows, heads]
  std::int64_t rows = 0;
  std::int32_t heads = 0;
  float* logits = nullptr;
};

/// A unit is a head.
struct SinkGradientsParameters {
  const float* sinks = nullptr;
  const float* lse = nullptr;    ///< [rows, heads]
  const float* delta = nullptr;  ///< [rows, heads]
  std::int64_t rows = 0;
  std::int32_t heads = 0;
  float* dsinks = nullptr;
};

/// A unit is a row of one head.
struct RowDotParameters {
  const void* out = nullptr;   ///< [rows, dim]
  const void* dout = nullptr;  ///< [rows, dim]
  float* delta = nullptr;      ///< [rows]
  std::int64_t rows = 0;       ///< times heads
  std::int32_t dim = 0;
};

/// Of copy_rows and add_rows; strides are in elements. A unit is a row.
struct RowTablesParameters {
  const void* source = nullptr;
  void* target = nullptr;
  std::int64_t source_stride = 0;
  std::int64_t target_stride = 0;
  std::int64_t rows = 0;
  std::int64_t elements = 0;  ///< of a row
};

/// A unit is an element.
struct FillParameters {
  float* target = nullptr;
  std::int64_t count = 0;
  float value = 0.0F;
};

}  // namespace hcp::cuda
