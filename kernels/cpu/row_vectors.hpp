/// Vectors of stored elements and their conversion, for one instruction set, written with the compiler's
/// vector extension.
///
/// As in vectors.hpp everything is a template over a class `Isa` of one translation unit's anonymous
/// namespace, and nothing calls inline functions of the standard library. Here `Isa` describes:
///   lanes                   fp32 values of a vector register
///   fused_multiply_add      whether a * b + c is rounded once
///   to_high_halves(halves)  32-bit words with these high halves and 0 below
///   high_halves(words)      the high halves of 32-bit words
///   widen_fp16, round_fp16  conversion of `lanes` values, with the bits of kernels/data_type
///   stream(target, packed)  stores past the caches; target is aligned to the size of packed
///   finish_streaming()      orders streamed stores before whatever follows
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/data_type.hpp"

namespace hcp::row_arithmetic {

template <int lanes>
struct Vectors {
  typedef float Floats __attribute__((vector_size(4 * lanes)));
  typedef std::uint32_t Words __attribute__((vector_size(4 * lanes)));
  typedef std::uint16_t Halves __attribute__((vector_size(2 * lanes)));
};
template <typename Isa>
using Floats = typename Vectors<Isa::lanes>::Floats;
template <typename Isa>
using Words = typename Vectors<Isa::lanes>::Words;
template <typename Isa>
using Halves = typename Vectors<Isa::lanes>::Halves;

// A storage class: `Packed` are the elements, of `size` bytes each, that are worked on at a time, as they lie
// in memory.

template <typename Isa>
struct StoredFp32 {
  using Packed = Floats<Isa>;
  static constexpr std::int64_t size = 4;
  [[gnu::always_inline]] static Floats<Isa> widen(Packed packed) { return packed; }
  [[gnu::always_inline]] static Packed round(Floats<Isa> values) { return values; }
};

template <typename Isa>
struct StoredBf16 {
  using Packed = Halves<Isa>;
  static constexpr std::int64_t size = 2;

  [[gnu::always_inline]] static Floats<Isa> widen(Packed packed) {
    return (Floats<Isa>)Isa::to_high_halves(packed);
  }

  /// In integers: the processors' own instruction takes numbers below the normal range for zero.
  [[gnu::always_inline]] static Packed round(Floats<Isa> values) {
    const auto bits = (Words<Isa>)values;
    const Words<Isa> rounded = bits + 0x7fffU + ((bits >> 16) & 1U);  // the added odd bit breaks ties to even
    // A NaN whose payload is only in the low half would round to infinity: make it quiet instead.
    return Isa::high_halves(values == values ? rounded : bits | 0x0040'0000U);
  }
};

template <typename Isa>
struct StoredFp16 {
  using Packed = Halves<Isa>;
  static constexpr std::int64_t size = 2;
  [[gnu::always_inline]] static Floats<Isa> widen(Packed packed) { return Isa::widen_fp16(packed); }
  [[gnu::always_inline]] static Packed round(Floats<Isa> values) { return Isa::round_fp16(values); }
};

/// Bytes that are moved as they are.
template <typename Isa>
struct StoredBytes {
  using Packed = Floats<Isa>;
  static constexpr std::int64_t size = 1;
  [[gnu::always_inline]] static Packed widen(Packed packed) { return packed; }
  [[gnu::always_inline]] static Packed round(Packed packed) { return packed; }
};

/// Calls `work` with the storage class of `type`.
template <typename Isa, typename Work>
[[gnu::always_inline]] inline void with_storage(DataType type, const Work& work) {
  switch (type) {
    case DataType::fp32:
      return work(StoredFp32<Isa>{});
    case DataType::bf16:
      return work(StoredBf16<Isa>{});
    case DataType::fp16:
      return work(StoredFp16<Isa>{});
  }
}

template <typename Packed>
[[gnu::always_inline]] inline Packed load(const std::byte* source) {
  Packed packed;
  __builtin_memcpy(&packed, source, sizeof(Packed));
  return packed;
}

template <typename Packed>
[[gnu::always_inline]] inline void store(std::byte* target, Packed packed) {
  __builtin_memcpy(target, &packed, sizeof(Packed));
}

/// The first `bytes` bytes, the rest 0.
template <typename Packed>
[[gnu::always_inline]] inline Packed load_some(const std::byte* source, std::int64_t bytes) {
  Packed packed{};
  __builtin_memcpy(&packed, source, static_cast<std::size_t>(bytes));
  return packed;
}

template <typename Packed>
[[gnu::always_inline]] inline void store_some(std::byte* target, Packed packed, std::int64_t bytes) {
  __builtin_memcpy(target, &packed, static_cast<std::size_t>(bytes));
}

/// The first `bytes` bytes, usually all.
template <typename Packed>
[[gnu::always_inline]] inline Packed load_up_to(const std::byte* source, std::int64_t bytes) {
  return bytes == sizeof(Packed) ? load<Packed>(source) : load_some<Packed>(source, bytes);
}

template <typename Packed>
[[gnu::always_inline]] inline void store_up_to(std::byte* target, Packed packed, std::int64_t bytes) {
  if (bytes == sizeof(Packed)) {
    store(target, packed);
  } else {
    store_some(target, packed, bytes);
  }
}

}  // namespace hcp::row_arithmetic
