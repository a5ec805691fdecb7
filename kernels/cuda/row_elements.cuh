/// Rows of stored elements in global memory: eight at a time where they are aligned to 16 bytes, else one by
/// one.
#pragma once

#include <cstdint>

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/element_types.cuh"

namespace hcp::cuda {

inline constexpr int run_elements = 8;

struct alignas(16) Words {
  std::uint32_t word[4];
};
struct alignas(16) Floats {
  float value[4];
};

/// Storage of 16 bits, as element_types.cuh has it.
template <typename Element>
struct RowElement {
  using Stored = std::uint16_t;

  static HCP_DEVICE float widen(Stored stored) { return Element::widen(stored); }
  static HCP_DEVICE Stored round(float value) {
    return static_cast<Stored>(Element::pack(value, 0.0F) & 0xFFFFU);
  }
  static HCP_DEVICE void load_run(const Stored* stored, float (&values)[run_elements]) {
    const Words words = *reinterpret_cast<const Words*>(stored);
#pragma unroll
    for (int i = 0; i < run_elements; ++i) {
      values[i] = widen(static_cast<Stored>(words.word[i / 2] >> (16 * (i % 2))));
    }
  }
  static HCP_DEVICE void store_run(const float (&values)[run_elements], Stored* stored) {
    Words words;
#pragma unroll
    for (int i = 0; i < run_elements / 2; ++i) {
      words.word[i] = Element::pack(values[2 * i], values[2 * i + 1]);
    }
    *reinterpret_cast<Words*>(stored) = words;
  }
};

struct Fp32;  ///< storage that is not rounded

template <>
struct RowElement<Fp32> {
  using Stored = float;

  static HCP_DEVICE float widen(Stored stored) { return stored; }
  static HCP_DEVICE Stored round(float value) { return value; }
  static HCP_DEVICE void load_run(const Stored* stored, float (&values)[run_elements]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const Floats floats = reinterpret_cast<const Floats*>(stored)[half];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        values[4 * half + i] = floats.value[i];
      }
    }
  }
  static HCP_DEVICE void store_run(const float (&values)[run_elements], Stored* stored) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      Floats floats;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        floats.value[i] = values[4 * half + i];
      }
      reinterpret_cast<Floats*>(stored)[half] = floats;
    }
  }
};

/// Whether every row of a table begins at a multiple of 16 bytes.
template <typename Stored>
HCP_DEVICE bool rows_are_aligned(const Stored* table, std::int64_t stride) {
  return (reinterpret_cast<std::uintptr_t>(table) | static_cast<std::uintptr_t>(stride) * sizeof(Stored)) %
             16 ==
         0;
}

}  // namespace hcp::cuda
