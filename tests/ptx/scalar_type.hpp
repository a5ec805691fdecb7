/// The types that PTX instructions and variables carry.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hcp::ptx {

enum class ScalarType : std::uint8_t {
  pred,
  b8,
  u8,
  s8,
  b16,
  u16,
  s16,
  f16,
  bf16,
  b32,
  u32,
  s32,
  f32,
  f16x2,
  bf16x2,
  tf32,
  b64,
  u64,
  s64,
  f64
};

/// The type that PTX writes as `name`, without the dot ("s32").
[[nodiscard]] std::optional<ScalarType> scalar_type(std::string_view name);

/// Bytes of one value; 0 for predicates, which are bits of a lane mask.
[[nodiscard]] int bytes_of(ScalarType type);

[[nodiscard]] bool is_signed_integer(ScalarType type);

/// Floating point of any width, packed pairs included.
[[nodiscard]] bool is_float(ScalarType type);

}  // namespace hcp::ptx
