#include "tests/ptx/scalar_type.hpp"

#include <algorithm>
#include <array>

namespace hcp::ptx {

namespace {

struct TypeFacts {
  std::string_view name;
  int bytes;
};

// In the order of the enumeration.
constexpr std::array<TypeFacts, 20> type_facts{{
    {"pred", 0},   {"b8", 1},   {"u8", 1},  {"s8", 1},  {"b16", 2}, {"u16", 2}, {"s16", 2},
    {"f16", 2},    {"bf16", 2}, {"b32", 4}, {"u32", 4}, {"s32", 4}, {"f32", 4}, {"f16x2", 4},
    {"bf16x2", 4}, {"tf32", 4}, {"b64", 8}, {"u64", 8}, {"s64", 8}, {"f64", 8},
}};

}  // namespace

std::optional<ScalarType> scalar_type(std::string_view name) {
  const auto* const found =
      std::ranges::find_if(type_facts, [&](const TypeFacts& facts) { return facts.name == name; });
  if (found == type_facts.end()) {
    return std::nullopt;
  }
  return static_cast<ScalarType>(found - type_facts.begin());
}

int bytes_of(ScalarType type) {
  return type_facts.at(static_cast<std::size_t>(type)).bytes;
}

bool is_signed_integer(ScalarType type) {
  return type == ScalarType::s8 || type == ScalarType::s16 || type == ScalarType::s32 ||
         type == ScalarType::s64;
}

bool is_float(ScalarType type) {
  switch (type) {
    case ScalarType::f16:
    case ScalarType::bf16:
    case ScalarType::f32:
    case ScalarType::f16x2:
    case ScalarType::bf16x2:
    case ScalarType::tf32:
    case ScalarType::f64:
      return true;
    default:
      return false;
  }
}

}  // namespace hcp::ptx
