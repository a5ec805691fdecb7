#include "kernels/data_type.hpp"

#include <bit>
#include <cstring>
#include <stdexcept>
#include <string>

namespace hcp {
namespace {

// The conversions are integer selects without branches, so that the loops over them vectorise for every
// x86-64.

constexpr std::uint32_t fp32_infinity = 0x7f80'0000;
constexpr std::uint32_t fp32_magnitude = 0x7fff'ffff;

float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = bits + 0x7fff + ((bits >> 16) & 1);  // the added odd bit breaks ties to even
  // A NaN whose payload is only in the low half would round to infinity: make it quiet instead.
  const std::uint32_t quiet_nan = bits | 0x0040'0000;
  return static_cast<std::uint16_t>(((bits & fp32_magnitude) > fp32_infinity ? quiet_nan : rounded) >> 16);
}

float from_fp16(std::uint16_t half) {
  const auto bits = static_cast<std::uint32_t>(half);
  const std::uint32_t shifted = (bits & 0x7fff) << 13;
  // fp16's exponent bias is 15, fp32's 127. The product is exact, for numbers below fp16's normal range too.
  const auto finite = std::bit_cast<std::uint32_t>(std::bit_cast<float>(shifted) * 0x1p112F);
  const std::uint32_t quiet_bit = shifted > 0x0f80'0000 ? 0x0040'0000 : 0;  // a NaN becomes quiet
  const std::uint32_t magnitude = shifted >= 0x0f80'0000 ? (shifted | fp32_infinity | quiet_bit) : finite;
  return std::bit_cast<float>(magnitude | (bits & 0x8000) << 16);
}

std::uint16_t to_fp16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & fp32_magnitude;
  // Below 2^-14 the unit of fp16 is 2^-24, which is the unit of fp32 at 0.5: the addition rounds.
  const auto below_normal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) -
                            std::bit_cast<std::uint32_t>(0.5F);
  const std::uint32_t normal = (magnitude - (112U << 23) + 0x0fff + ((magnitude >> 13) & 1)) >> 13;
  const std::uint32_t quiet_nan = 0x7e00 | ((magnitude >> 13) & 0x01ff);
  std::uint32_t result = magnitude < 0x3880'0000 ? below_normal : normal;
  result = magnitude >= 0x477f'f000 ? 0x7c00 : result;  // from 65520 on, halfway between 65504 and 2^16
  result = magnitude > fp32_infinity ? quiet_nan : result;
  return static_cast<std::uint16_t>(result | (bits >> 16 & 0x8000));
}

template <float (*Convert)(std::uint16_t)>
void widen_all(const std::byte* source, float* target, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, source + 2 * i, 2);
    target[i] = Convert(bits);
  }
}

template <std::uint16_t (*Convert)(float)>
void round_all(const float* source, std::byte* target, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint16_t bits = Convert(source[i]);
    std::memcpy(target + 2 * i, &bits, 2);
  }
}

}  // namespace

std::string_view name_of(DataType type) {
  switch (type) {
    case DataType::fp32:
      return "fp32";
    case DataType::bf16:
      return "bf16";
    case DataType::fp16:
      return "fp16";
  }
  throw std::logic_error{"unknown data type"};
}

DataType parse_data_type(std::string_view name) {
  for (const DataType type : {DataType::fp32, DataType::bf16, DataType::fp16}) {
    if (name == name_of(type)) {
      return type;
    }
  }
  throw std::invalid_argument{"data type '" + std::string{name} + "' is unknown; use fp32, bf16 or fp16"};
}

void widen(DataType from, const std::byte* source, float* target, std::size_t count) {
  switch (from) {
    case DataType::fp32:
      if (count > 0) {
        std::memcpy(target, source, count * sizeof(float));
      }
      return;
    case DataType::bf16:
      return widen_all<from_bf16>(source, target, count);
    case DataType::fp16:
      return widen_all<from_fp16>(source, target, count);
  }
}

void round_to(DataType to, const float* source, std::byte* target, std::size_t count) {
  switch (to) {
    case DataType::fp32:
      if (count > 0) {
        std::memcpy(target, source, count * sizeof(float));
      }
      return;
    case DataType::bf16:
      return round_all<to_bf16>(source, target, count);
    case DataType::fp16:
      return round_all<to_fp16>(source, target, count);
  }
}

}  // namespace hcp
