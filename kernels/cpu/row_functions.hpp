/// Row by row arithmetic in memory, once per instruction set: what packs heads for the all-to-all, converts
/// storage types, adds gradients and normalises the output. All of it is bound by memory, so each function
/// reads and writes every element once.
///
/// Single-threaded; rows are independent of each other, so the bits do not depend on how a table is cut into
/// calls. Only plain data crosses this boundary: the translation units behind it are compiled for instruction
/// sets that the rest of the program may not use, so they share no inline function with it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/tensor.hpp"

namespace hcp {

/// How results are stored.
enum class StoreHint : std::uint8_t {
  cached,
  streaming,  ///< past the caches: for targets too large to be found there later, aligned to 64 bytes in
              ///< every row
};

struct RowFunctions {
  const char* instruction_set;

  /// target[r, e] = source[r, e], with the bits of widen and round_to; equal types bit by bit.
  void (*copy)(const BasicRowTable<const std::byte>& source, const BasicRowTable<std::byte>& target,
               std::int64_t rows, std::int64_t elements, StoreHint hint);

  /// target[r, e] += source[r, e]; the target is fp32.
  void (*add)(const BasicRowTable<const std::byte>& source, const BasicRowTable<std::byte>& target,
              std::int64_t rows, std::int64_t elements);

  /// sums[r] = sum over e of left[r, e] * right[r, e].
  void (*dot)(const BasicRowTable<const std::byte>& left, const BasicRowTable<const std::byte>& right,
              std::int64_t rows, std::int64_t elements, float* sums);

  /// out[r, e] /= sum[r] and lse[r] = ln 2 (max[r] + log2(sum[r])), to half a unit in the last place; a row
  /// whose sum is 0 keeps its out and gets -inf. lse may be max.
  void (*normalise)(float* out, const float* max, const float* sum, std::int64_t rows, std::int64_t elements,
                    float* lse);
};

/// For every processor that runs the program.
[[nodiscard]] const RowFunctions& portable_row_functions();
/// x86-64 with AVX2, FMA and F16C.
[[nodiscard]] const RowFunctions& avx2_row_functions();
/// x86-64 with AVX-512 F, BW, DQ, VL.
[[nodiscard]] const RowFunctions& avx512_row_functions();

/// Those of the instruction set that the host kernel runs on.
/// @throws std::invalid_argument as cpu_isa_name
[[nodiscard]] const RowFunctions& selected_row_functions();

}  // namespace hcp
