// add, sub, mul, mad, div, rem, min, max, neg, abs on integers
#include <limits>
#include <type_traits>

#include "tests/ptx/integer_operations.hpp"
#include "tests/ptx/lane_operations.hpp"
#include "tests/ptx/opcode_table.hpp"

namespace hcp::ptx {

namespace {

__extension__ using WideSigned = __int128;
__extension__ using WideUnsigned = unsigned __int128;

// The type of twice the width and the same sign.
template <typename T>
struct Doubled;
template <>
struct Doubled<std::uint16_t> {
  using Type = std::uint32_t;
};
template <>
struct Doubled<std::int16_t> {
  using Type = std::int32_t;
};
template <>
struct Doubled<std::uint32_t> {
  using Type = std::uint64_t;
};
template <>
struct Doubled<std::int32_t> {
  using Type = std::int64_t;
};
template <>
struct Doubled<std::uint64_t> {
  using Type = WideUnsigned;
};
template <>
struct Doubled<std::int64_t> {
  using Type = WideSigned;
};

// Division by zero has no defined result in PTX; hardware gives all ones.
struct Divide {
  template <typename T>
  static T of(T a, T b) {
    if (b == 0) {
      return static_cast<T>(-1);
    }
    return std::is_signed_v<T> && b == static_cast<T>(-1) ? Subtract::of(T{0}, a) : static_cast<T>(a / b);
  }
};
struct Remainder {
  template <typename T>
  static T of(T a, T b) {
    if (b == 0) {
      return a;
    }
    return std::is_signed_v<T> && b == static_cast<T>(-1) ? T{0} : static_cast<T>(a % b);
  }
};
struct Negate {
  template <typename T>
  static T of(T a) {
    return Subtract::of(T{0}, a);
  }
};
struct Absolute {
  template <typename T>
  static T of(T a) {
    return a < 0 ? Negate::of(a) : a;
  }
};
struct MultiplyLow {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>(static_cast<Unsigned<T>>(a) * static_cast<Unsigned<T>>(b));
  }
  template <typename T>
  static T of(T a, T b, T c) {
    return Add::of(of(a, b), c);
  }
};
struct MultiplyHigh {
  template <typename T>
  static T of(T a, T b) {
    using Wide = typename Doubled<T>::Type;
    return static_cast<T>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> (8 * sizeof(T)));
  }
  template <typename T>
  static T of(T a, T b, T c) {
    return Add::of(of(a, b), c);
  }
};
struct MultiplyWide {
  template <typename T>
  static auto of(T a, T b) {
    using Wide = typename Doubled<T>::Type;
    return static_cast<Wide>(static_cast<Wide>(a) * static_cast<Wide>(b));
  }
  template <typename T, typename Wide>
  static Wide of(T a, T b, Wide c) {
    return Add::of(static_cast<Wide>(of(a, b)), c);
  }
};

template <typename Operation>
void decode_unary(Decoding& decoding) {
  const ScalarType type = decoding.type_of({ScalarType::s16, ScalarType::s32, ScalarType::s64});
  take_operands(decoding, type, 1);
  decoding.result.execute =
      for_integer(decoding, type, []<typename T>(T) -> Handler { return unary<T, T, Operation>; });
}

template <typename Operation>
void decode_binary(Decoding& decoding) {
  const ScalarType type = decoding.type();
  take_operands(decoding, type, 2);
  decoding.result.execute =
      for_integer(decoding, type, []<typename T>(T) -> Handler { return binary<T, T, T, Operation>; });
}

ScalarType doubled(const Decoding& decoding, ScalarType type) {
  switch (type) {
    case ScalarType::u16:
      return ScalarType::u32;
    case ScalarType::s16:
      return ScalarType::s32;
    case ScalarType::u32:
      return ScalarType::u64;
    case ScalarType::s32:
      return ScalarType::s64;
    default:
      decoding.refuse("type");
  }
}

template <bool Adds, typename Operation>
Handler same_width(const Decoding& decoding, ScalarType type) {
  return for_integer(decoding, type, []<typename T>(T) -> Handler {
    if constexpr (Adds) {
      return ternary<T, T, T, T, Operation>;
    } else {
      return binary<T, T, T, Operation>;
    }
  });
}

// mul and mad: .lo, .hi or .wide
template <bool Adds>
void decode_multiply(Decoding& decoding) {
  const std::string part = decoding.take_one_of({"lo", "hi", "wide"});
  const ScalarType type = decoding.type();
  if (part.empty()) {
    decoding.refuse("a multiplication without .lo, .hi or .wide");
  }
  if (part != "wide") {
    take_operands(decoding, type, Adds ? 3 : 2);
    decoding.result.execute = part == "lo" ? same_width<Adds, MultiplyLow>(decoding, type)
                                           : same_width<Adds, MultiplyHigh>(decoding, type);
    return;
  }
  decoding.expect_operands(Adds ? 4 : 3);
  const ScalarType wide = doubled(decoding, type);
  auto& operands = decoding.result.operands;
  operands[0] = decoding.destination(0, wide);
  operands[1] = decoding.source(1, type);
  operands[2] = decoding.source(2, type);
  if (Adds) {
    operands[3] = decoding.source(3, wide);
  }
  decoding.result.execute = for_integer(decoding, type, []<typename T>(T) -> Handler {
    if constexpr (sizeof(T) == 8) {
      return nullptr;  // doubled() has refused it
    } else {
      using Wide = typename Doubled<T>::Type;
      if constexpr (Adds) {
        return ternary<Wide, T, T, Wide, MultiplyWide>;
      } else {
        return binary<Wide, T, T, MultiplyWide>;
      }
    }
  });
}

}  // namespace

void add_integer_opcodes(OpcodeTable& table) {
  table.add("add", {TypeClass::integer}, decode_binary<Add>);
  table.add("sub", {TypeClass::integer}, decode_binary<Subtract>);
  table.add("min", {TypeClass::integer}, decode_binary<Minimum>);
  table.add("max", {TypeClass::integer}, decode_binary<Maximum>);
  table.add("div", {TypeClass::integer}, decode_binary<Divide>);
  table.add("rem", {TypeClass::integer}, decode_binary<Remainder>);
  table.add("neg", {TypeClass::integer}, decode_unary<Negate>);
  table.add("abs", {TypeClass::integer}, decode_unary<Absolute>);
  table.add("mul", {TypeClass::integer}, decode_multiply<false>);
  table.add("mad", {TypeClass::integer}, decode_multiply<true>);
}

}  // namespace hcp::ptx
