/// The device layer: all that kernels use of the machine below C++. The instructions that C++ does not have
/// are here and nowhere else, so a kernel body that uses this vocabulary alone also runs where another file
/// defines it.
///
/// Fragments are the registers of one warp for mma.sync.m16n8k16; which element lies in which lane stands in
/// mma_tile.cuh.
/// @source NVIDIA PTX ISA, sections on mma.m16n8k16, ldmatrix and cp.async
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#define HCP_DEVICE __device__ __forceinline__
/// A kernel with at most so many threads per block; so few registers that `blocks` of them fit a
/// multiprocessor.
#define HCP_KERNEL(threads, blocks) __global__ __launch_bounds__(threads, blocks)
/// The block's dynamic shared memory.
#define HCP_SHARED_MEMORY(name) extern __shared__ __align__(128) std::byte name[]

namespace hcp::device {

HCP_DEVICE int thread() {
  return static_cast<int>(threadIdx.x);
}
/// thread() % 32, found anew by every call: what is computed from it is not kept in registers from one round
/// of a loop to the next.
HCP_DEVICE int fresh_lane() {
  int lane = thread() % 32;
  asm volatile("" : "+r"(lane));
  return lane;
}
HCP_DEVICE int block_x() {
  return static_cast<int>(blockIdx.x);
}
HCP_DEVICE int block_y() {
  return static_cast<int>(blockIdx.y);
}
HCP_DEVICE int blocks_x() {
  return static_cast<int>(gridDim.x);
}

/// All threads of the block meet; what they wrote to memory is seen by all.
HCP_DEVICE void barrier() {
  __syncthreads();
}

/// The value of the lane whose number differs in the bits of `mask`.
HCP_DEVICE float exchange(float value, int mask) {
  return __shfl_xor_sync(0xFFFF'FFFFU, value, mask);
}

/// 2^x, denormal results are 0. exp2(-inf) is 0.
HCP_DEVICE float exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
HCP_DEVICE float log2(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// The value if `bit` is 1, 0 if it is 0: bit operations, because predicates are few.
HCP_DEVICE float value_if(std::uint32_t bit, float value) {
  return __uint_as_float(__float_as_uint(value) & (0U - bit));
}

/// Two values rounded to nearest even, `low` in the low half.
HCP_DEVICE std::uint32_t pack_bf16(float low, float high) {
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
HCP_DEVICE std::uint32_t pack_fp16(float low, float high) {
  std::uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}
HCP_DEVICE float widen_bf16(std::uint16_t bits) {
  return __uint_as_float(static_cast<std::uint32_t>(bits) << 16);
}
HCP_DEVICE float widen_fp16(std::uint16_t bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

HCP_DEVICE std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

/// Four 8 x 8 matrices of 16-bit elements; lanes 8 i .. 8 i + 7 give the addresses of the rows of matrix i,
/// 16 bytes each in shared memory.
HCP_DEVICE void load_matrices(std::uint32_t (&fragment)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
               : "r"(shared_address(row))
               : "memory");
}
HCP_DEVICE void load_transposed_matrices(std::uint32_t (&fragment)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
               : "r"(shared_address(row))
               : "memory");
}

/// c[16 x 8] += a[16 x 16] b[16 x 8], sums in fp32.
HCP_DEVICE void multiply_bf16(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                              std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
HCP_DEVICE void multiply_fp16(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                              std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Begins to copy 16 bytes from global to shared memory, both aligned to 16; zeros if not `valid`, and then
/// nothing is read. Belongs to the group that the next commit_copies closes.
HCP_DEVICE void copy_async(void* shared, const void* global, bool valid) {
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)), "l"(global),
               "r"(bytes)
               : "memory");
}
/// The same with 4 bytes.
HCP_DEVICE void copy_word_async(void* shared, const void* global, bool valid) {
  const int bytes = valid ? 4 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(shared)), "l"(global),
               "r"(bytes)
               : "memory");
}
HCP_DEVICE void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Until at most `groups` of this thread's latest groups are still on their way. Other threads see the data
/// after a barrier.
template <int groups>
HCP_DEVICE void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory");
}

/// The high half of the product.
HCP_DEVICE std::uint32_t high_product(std::uint32_t a, std::uint32_t b) {
  return __umulhi(a, b);
}

}  // namespace hcp::device
