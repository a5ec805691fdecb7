/// The device layer on the host, in place of the header of the same path: the same names with the same
/// meaning, for fibers of tests/simt. It is chosen by the order of the include path.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "kernels/data_type.hpp"
#include "tests/simt/block.hpp"
#include "tests/simt/warp_operations.hpp"

#define HCP_DEVICE inline
#define HCP_KERNEL(threads, blocks)
#define HCP_SHARED_MEMORY(name) std::byte* const name = hcp::simt::Block::current().shared_memory()

namespace hcp::device {

inline int thread() {
  return simt::Block::current().thread().number;
}
inline int fresh_lane() {
  return thread() % 32;
}
inline int block_x() {
  return simt::Block::current().x();
}
inline int block_y() {
  return simt::Block::current().y();
}
inline int blocks_x() {
  return simt::Block::current().launch().blocks_x;
}
inline void barrier() {
  simt::Block::current().barrier();
}
inline float exchange(float value, int mask) {
  return simt::exchange(value, mask);
}

inline float exp2(float x) {
  const float y = std::exp2(x);
  return y < std::numeric_limits<float>::min() ? 0.0F : y;
}
inline float log2(float x) {
  return std::log2(x);
}

inline float value_if(std::uint32_t bit, float value) {
  return bit != 0 ? value : 0.0F;
}

inline std::uint32_t pack(DataType type, float low, float high) {
  const float values[]{low, high};
  std::uint32_t pair = 0;
  round_to(type, values, reinterpret_cast<std::byte*>(&pair), 2);
  return pair;
}
inline float widen_one(DataType type, std::uint16_t bits) {
  float value = 0.0F;
  widen(type, reinterpret_cast<const std::byte*>(&bits), &value, 1);
  return value;
}
inline std::uint32_t pack_bf16(float low, float high) {
  return pack(DataType::bf16, low, high);
}
inline std::uint32_t pack_fp16(float low, float high) {
  return pack(DataType::fp16, low, high);
}
inline float widen_bf16(std::uint16_t bits) {
  return widen_one(DataType::bf16, bits);
}
inline float widen_fp16(std::uint16_t bits) {
  return widen_one(DataType::fp16, bits);
}

inline void load_matrices(std::uint32_t (&fragment)[4], const void* row) {
  simt::load_matrices(fragment, row, false);
}
inline void load_transposed_matrices(std::uint32_t (&fragment)[4], const void* row) {
  simt::load_matrices(fragment, row, true);
}
inline void multiply_bf16(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  simt::multiply(DataType::bf16, c, a, b0, b1);
}
inline void multiply_fp16(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  simt::multiply(DataType::fp16, c, a, b0, b1);
}

inline void begin_copy(void* shared, const void* global, std::size_t bytes, bool valid) {
  simt::Block& block = simt::Block::current();
  block.check_shared(shared, bytes);
  if (valid && reinterpret_cast<std::uintptr_t>(global) % bytes != 0) {
    block.fail("global memory not aligned to " + std::to_string(bytes) + " bytes");
  }
  block.thread().copies.begin(shared, global, bytes, valid);
}
inline void copy_async(void* shared, const void* global, bool valid) {
  begin_copy(shared, global, 16, valid);
}
inline void copy_word_async(void* shared, const void* global, bool valid) {
  begin_copy(shared, global, 4, valid);
}
inline void commit_copies() {
  simt::Block::current().thread().copies.close_group();
}
template <int groups>
void wait_for_copies() {
  simt::Block::current().thread().copies.wait(groups);
}

inline std::uint32_t high_product(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(a) * b >> 32);
}

}  // namespace hcp::device
