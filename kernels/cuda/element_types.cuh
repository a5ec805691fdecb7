/// The 16-bit storage types of the tensor-core kernels.
#pragma once

#include <cstdint>

#include "kernels/cuda/device.cuh"

namespace hcp::cuda {

struct Bf16 {
  static HCP_DEVICE std::uint32_t pack(float low, float high) { return device::pack_bf16(low, high); }
  static HCP_DEVICE float widen(std::uint16_t bits) { return device::widen_bf16(bits); }
  static HCP_DEVICE void multiply(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                  std::uint32_t b1) {
    device::multiply_bf16(c, a, b0, b1);
  }
};

struct Fp16 {
  static HCP_DEVICE std::uint32_t pack(float low, float high) { return device::pack_fp16(low, high); }
  static HCP_DEVICE float widen(std::uint16_t bits) { return device::widen_fp16(bits); }
  static HCP_DEVICE void multiply(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                  std::uint32_t b1) {
    device::multiply_fp16(c, a, b0, b1);
  }
};

}  // namespace hcp::cuda
