/// Element types of tensors in memory and on the wire, and their conversion.
///
/// All arithmetic is fp32; bf16 and fp16 exist only as storage. Rounding is to nearest, ties to even.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hcp {

enum class DataType : std::uint8_t { fp32, bf16, fp16 };

/// Bytes of one element.
[[nodiscard]] constexpr std::size_t size_of(DataType type) {
  return type == DataType::fp32 ? 4 : 2;
}

[[nodiscard]] std::string_view name_of(DataType type);

/// @throws std::invalid_argument unless `name` is fp32, bf16 or fp16
[[nodiscard]] DataType parse_data_type(std::string_view name);

/// `count` elements of `from` to fp32; the two ranges do not overlap. Exact; a NaN of fp16 becomes quiet, as
/// the processors' own conversion makes it.
void widen(DataType from, const std::byte* source, float* target, std::size_t count);

/// `count` fp32 values rounded to `to`; the two ranges do not overlap. NaN stays NaN, values beyond fp16's
/// range become infinite.
void round_to(DataType to, const float* source, std::byte* target, std::size_t count);

}  // namespace hcp
