/// Instructions in which lanes work together, or with shared memory. Which lane holds which element of a
/// matrix does not matter here: operands and results are the registers of a lane.
#pragma once

#include <cstddef>

#include "kernels/cuda/device.cuh"
#include "tests/ptx/conformance/registration.cuh"

namespace hcp::ptx {

/// Hardware adds products in an order and a precision of its own: results are equal where sums are exact, and
/// close where nothing cancels. Of numbers that cancel, differences are told only.
inline constexpr Tolerance of_sums{.ulp = 16.0};
inline constexpr Tolerance untold{.ulp = 1e300, .absolute = 1e300};

// Four words of A, two of B and four of C.
#define HCP_MMA(name, instruction, a, b, c, tolerance)                                                 \
  HCP_MICRO_KERNEL(name, 10, 4) {                                                                      \
    asm volatile(instruction " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"    \
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])                              \
                 : "r"(in[0]), "r"(in[1]), "r"(in[2]), "r"(in[3]), "r"(in[4]), "r"(in[5]), "r"(in[6]), \
                   "r"(in[7]), "r"(in[8]), "r"(in[9]));                                                \
  }                                                                                                    \
  HCP_REGISTER(name, instruction, {a, a, a, a, b, b, c, c, c, c}, 4, fp32, tolerance)
#define HCP_BF16_MMA "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
#define HCP_FP16_MMA "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
HCP_MMA(mma_whole_bf16, HCP_BF16_MMA, whole_bf16, whole_bf16, whole, Tolerance{});
HCP_MMA(mma_tiny_bf16, HCP_BF16_MMA, tiny_bf16, whole_bf16, zero, Tolerance{});
HCP_MMA(mma_special_bf16, HCP_BF16_MMA, special_bf16, special_bf16, special, Tolerance{});
HCP_MMA(mma_positive_bf16, HCP_BF16_MMA, positive_bf16, positive_bf16, positive, of_sums);
HCP_MMA(mma_moderate_bf16, HCP_BF16_MMA, moderate_bf16, moderate_bf16, moderate, untold);
HCP_MMA(mma_whole_fp16, HCP_FP16_MMA, whole_fp16, whole_fp16, whole, Tolerance{});
HCP_MMA(mma_tiny_fp16, HCP_FP16_MMA, tiny_fp16, whole_fp16, zero, Tolerance{});
HCP_MMA(mma_special_fp16, HCP_FP16_MMA, special_fp16, special_fp16, special, Tolerance{});
HCP_MMA(mma_positive_fp16, HCP_FP16_MMA, positive_fp16, positive_fp16, positive, of_sums);
HCP_MMA(mma_moderate_fp16, HCP_FP16_MMA, moderate_fp16, moderate_fp16, moderate, untold);
#undef HCP_FP16_MMA
#undef HCP_BF16_MMA
#undef HCP_MMA

// The 16 bytes of a lane are a row of a matrix; the fifth word says whose row the lane gives the address of.
#define HCP_LDMATRIX(name, instruction)                                   \
  HCP_MICRO_KERNEL(name, 5, 4) {                                          \
    HCP_SHARED_MEMORY(shared);                                            \
    auto* const rows = reinterpret_cast<std::uint32_t*>(shared);          \
    for (int i = 0; i < 4; ++i) {                                         \
      rows[4 * threadIdx.x + i] = in[i];                                  \
    }                                                                     \
    __syncwarp();                                                         \
    asm volatile(instruction " {%0, %1, %2, %3}, [%4];"                   \
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3]) \
                 : "r"(device::shared_address(rows + 4 * (in[4] % 32)))   \
                 : "memory");                                             \
  }                                                                       \
  HCP_REGISTER(name, instruction, {word, word, word, word, amount}, 4, word, Tolerance{}, 512)
HCP_LDMATRIX(ldmatrix_x4, "ldmatrix.sync.aligned.m8n8.x4.shared.b16");
HCP_LDMATRIX(ldmatrix_x4_trans, "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16");
#undef HCP_LDMATRIX

// The first words of a lane, as many as its fifth word says; the rest becomes 0.
#define HCP_COPY(name, instruction, words, bytes)                                                          \
  HCP_MICRO_KERNEL(name, 8, words) {                                                                       \
    HCP_SHARED_MEMORY(shared);                                                                             \
    auto* const target = reinterpret_cast<std::uint32_t*>(shared) + words * threadIdx.x;                   \
    for (int i = 0; i < words; ++i) {                                                                      \
      target[i] = ~0U;                                                                                     \
    }                                                                                                      \
    asm volatile(instruction " [%0], [%1], " bytes ", %2;" ::"r"(device::shared_address(target)), "l"(in), \
                 "r"(in[4] % (words + 1) * 4)                                                              \
                 : "memory");                                                                              \
    device::commit_copies();                                                                               \
    device::wait_for_copies<0>();                                                                          \
    for (int i = 0; i < words; ++i) {                                                                      \
      out[i] = target[i];                                                                                  \
    }                                                                                                      \
  }                                                                                                        \
  HCP_REGISTER(name, instruction " cp.async.commit_group cp.async.wait_group",                             \
               {word, word, word, word, amount, word, word, word}, words, word, Tolerance{}, words * 128)
HCP_COPY(cp_async_cg, "cp.async.cg.shared.global", 4, "16");
HCP_COPY(cp_async_ca, "cp.async.ca.shared.global", 1, "4");
#undef HCP_COPY

HCP_MICRO_KERNEL(shfl_sync_bfly_b32, 1, 5) {
  for (int i = 0; i < 5; ++i) {
    asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(out[i]) : "r"(in[0]), "r"(1 << i));
  }
}
HCP_REGISTER(shfl_sync_bfly_b32, "shfl.sync.bfly.b32", {word}, 5, word, Tolerance{});

}  // namespace hcp::ptx
