/// Tables of stored elements and the instruction sets to test on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/buffer.hpp"
#include "kernels/cpu/row_functions.hpp"
#include "kernels/data_type.hpp"

namespace hcp {

inline constexpr DataType all_types[]{DataType::fp32, DataType::bf16, DataType::fp16};

/// Those that this processor can run.
inline std::vector<const RowFunctions*> available_row_functions() {
  std::vector<const RowFunctions*> sets{&portable_row_functions()};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")) {
    sets.push_back(&avx2_row_functions());
  }
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    sets.push_back(&avx512_row_functions());
  }
#endif
  return sets;
}

/// Bytes aligned to cache lines, which streaming stores need.
class Bytes {
 public:
  explicit Bytes(std::size_t bytes)
      : buffer_{ledger_, MemoryCategory::qkv, static_cast<std::int64_t>(bytes)} {
    std::memset(buffer_.data(), 0x5a, bytes);
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  [[nodiscard]] std::byte* data() const { return buffer_.data(); }
  [[nodiscard]] std::vector<std::byte> copy() const {
    return {buffer_.data(), buffer_.data() + buffer_.bytes()};
  }

 private:
  MemoryLedger ledger_;
  Buffer buffer_;
};

/// `rows` rows `row_stride` elements apart; every byte 0x5a, or normally distributed values from a seed.
struct Table {
  Bytes bytes;
  DataType type;
  std::int64_t stride;

  Table(DataType storage, std::int64_t rows, std::int64_t row_stride)
      : bytes{static_cast<std::size_t>(rows * row_stride) * size_of(storage)},
        type{storage},
        stride{row_stride} {}
  Table(DataType storage, std::int64_t rows, std::int64_t row_stride, unsigned seed)
      : Table{storage, rows, row_stride} {
    std::mt19937 random{seed};
    std::normal_distribution<float> normal;
    std::vector<float> values(static_cast<std::size_t>(rows * row_stride));
    for (float& value : values) {
      value = normal(random);
    }
    round_to(type, values.data(), bytes.data(), values.size());
  }
  [[nodiscard]] BasicRowTable<std::byte> view() const { return {bytes.data(), type, stride}; }
  [[nodiscard]] BasicRowTable<const std::byte> const_view() const { return {bytes.data(), type, stride}; }
  [[nodiscard]] float value(std::int64_t row, std::int64_t element) const {
    float wide = 0.0F;
    widen(type, bytes.data() + (row * stride + element) * static_cast<std::int64_t>(size_of(type)), &wide, 1);
    return wide;
  }
};

}  // namespace hcp
