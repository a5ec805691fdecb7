/// One small kernel per PTX instruction that the kernels of kernels/cuda use, so that what the interpreter
/// makes of an instruction can be held against what hardware makes of it. Only what moves data or steers a
/// kernel has none: ld, st, mov, cvta, bra, ret, bar.sync.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hcp::ptx {

/// What a 32-bit operand is drawn from. Of those with two 16-bit numbers in a word, the name ends in their
/// type.
enum class Values : std::uint8_t {
  zero,
  word,           ///< any bits, often 0, 1, -1 and the ends of ranges
  amount,         ///< 0 .. 70: of a shift, and beyond
  divisor,        ///< a positive integer
  fp32,           ///< of all classes: moderate numbers, any bits, zeros, infinities, NaN, ends of ranges
  fp16_pair,      ///< the same
  whole,          ///< integers up to 8, as fp32: sums of their products are exact in any order
  whole_bf16,     // as whole
  whole_fp16,     // as whole
  tiny_bf16,      ///< multiples up to 8 of the smallest subnormal number
  tiny_fp16,      // as tiny_bf16
  special,        ///< 0, 1, -1, infinities and NaN, as fp32
  special_bf16,   // as special
  special_fp16,   // as special
  positive,       ///< in [0, 1), as fp32
  positive_bf16,  // as positive
  positive_fp16,  // as positive
  moderate,       ///< in (-1, 1), as fp32
  moderate_bf16,  // as moderate
  moderate_fp16   // as moderate
};

/// By how much results may differ from the interpreter's: by as many units in the last place or, absolutely,
/// by as much. 0, 0: not at all, but for the payload of a NaN.
struct Tolerance {
  double ulp = 0.0;
  double absolute = 0.0;
};

struct MicroKernel {
  std::string name;         ///< in PTX
  std::string instruction;  ///< in PTX, with the registers of its operands or without
  const void* function = nullptr;
  std::vector<Values> operands;  ///< of a thread
  int results = 1;               ///< words of a thread
  Values result = Values::word;  ///< word or fp32
  Tolerance tolerance;
  int shared_bytes = 0;
};

/// The argument of every micro kernel. Blocks are one warp; thread t of all threads has its operands in
/// in[t * operands], and its results in out[t * results]. `in` is aligned to 16 bytes.
struct MicroKernelWords {
  const std::uint32_t* in = nullptr;
  std::uint32_t* out = nullptr;
};

[[nodiscard]] const std::vector<MicroKernel>& micro_kernels();

/// The PTX of all of them, as nvcc wrote it.
[[nodiscard]] const char* micro_kernels_ptx();

}  // namespace hcp::ptx
