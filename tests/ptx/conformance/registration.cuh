/// How a micro kernel is written and put on the list. The text of asm must be a literal, and a kernel's name
/// in PTX is to be known: hence macros, which only micro_kernels.cu sees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tests/ptx/conformance/micro_kernels.hpp"

namespace hcp::ptx {

inline std::vector<MicroKernel>& registered_kernels() {
  static std::vector<MicroKernel> kernels;
  return kernels;
}

struct Registration {
  explicit Registration(MicroKernel kernel) { registered_kernels().push_back(std::move(kernel)); }
};

template <Values... operands>
inline constexpr int count_of = sizeof...(operands);

}  // namespace hcp::ptx

/// Begins a kernel, whose body follows; `in` and `out` are the thread's own words there.
#define HCP_MICRO_KERNEL(name, operand_words, result_words)                                 \
  __device__ __forceinline__ void name##_body(const std::uint32_t* in, std::uint32_t* out); \
  extern "C" __global__ void name(const MicroKernelWords words) {                           \
    const std::uint32_t thread = blockIdx.x * 32 + threadIdx.x;                             \
    name##_body(words.in + thread * (operand_words), words.out + thread * (result_words));  \
  }                                                                                         \
  __device__ __forceinline__ void name##_body(const std::uint32_t* in, std::uint32_t* out)

/// Puts it on the list. The rest are the fields of MicroKernel from `operands` on.
#define HCP_REGISTER(name, instruction, ...) \
  const Registration name##_registration(    \
      {#name, instruction, reinterpret_cast<const void*>(&name), __VA_ARGS__})

/// A kernel of one asm of `text`: results are %0 and, if there are two, %1; operands, of the kinds that
/// follow, are %2 to %5.
#define HCP_ASM_KERNEL(name, instruction, text, results, result, tolerance, ...)           \
  HCP_MICRO_KERNEL(name, (count_of<__VA_ARGS__>), results) {                               \
    constexpr int last = count_of<__VA_ARGS__> - 1;                                        \
    std::uint32_t low = 0;                                                                 \
    std::uint32_t high = 0;                                                                \
    asm volatile(text                                                                      \
                 : "=r"(low), "=r"(high)                                                   \
                 : "r"(in[0]), "r"(in[last < 1 ? last : 1]), "r"(in[last < 2 ? last : 2]), \
                   "r"(in[last < 3 ? last : 3]));                                          \
    out[0] = low;                                                                          \
    if constexpr (results == 2) {                                                          \
      out[results - 1] = high;                                                             \
    }                                                                                      \
  }                                                                                        \
  HCP_REGISTER(name, instruction, {__VA_ARGS__}, results, result, tolerance)
