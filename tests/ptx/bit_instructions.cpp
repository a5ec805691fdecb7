// and, or, xor, not, cnot, lop3, shl, shr, shf, bfe, bfi, prmt, popc, clz, brev, bfind
#include <algorithm>
#include <bit>
#include <type_traits>

#include "tests/ptx/integer_operations.hpp"
#include "tests/ptx/lane_operations.hpp"
#include "tests/ptx/opcode_table.hpp"

namespace hcp::ptx {

namespace {

struct Not {
  template <typename T>
  static T of(T a) {
    return static_cast<T>(~a);
  }
};
struct LogicalNot {
  template <typename T>
  static T of(T a) {
    return static_cast<T>(a == 0 ? 1 : 0);
  }
};
// Shifts by the width or more give zeros, or signs.
struct ShiftLeft {
  template <typename T>
  static T of(T a, std::uint32_t by) {
    const std::uint32_t bits = 8 * sizeof(T);
    return static_cast<T>(by >= bits ? 0 : static_cast<std::uint64_t>(a) << (by & (bits - 1)));
  }
};
struct ShiftRight {
  template <typename T>
  static T of(T a, std::uint32_t by) {
    const std::uint32_t last = 8 * sizeof(T) - 1;
    if (by > last && std::is_unsigned_v<T>) {
      return 0;
    }
    return static_cast<T>(a >> (by > last ? last : by));
  }
};
struct FunnelLeft {
  static std::uint32_t of(std::uint32_t low, std::uint32_t high, std::uint32_t by) {
    return static_cast<std::uint32_t>(((static_cast<std::uint64_t>(high) << 32 | low) << by) >> 32);
  }
};
struct FunnelRight {
  static std::uint32_t of(std::uint32_t low, std::uint32_t high, std::uint32_t by) {
    return static_cast<std::uint32_t>((static_cast<std::uint64_t>(high) << 32 | low) >> by);
  }
};
template <typename Funnel>
struct Wrapped {
  static std::uint32_t of(std::uint32_t low, std::uint32_t high, std::uint32_t by) {
    return Funnel::of(low, high, by & 31);
  }
};
template <typename Funnel>
struct Clamped {
  static std::uint32_t of(std::uint32_t low, std::uint32_t high, std::uint32_t by) {
    return Funnel::of(low, high, std::min(by, 32U));
  }
};
struct CountOnes {
  template <typename T>
  static std::uint32_t of(T a) {
    return static_cast<std::uint32_t>(std::popcount(a));
  }
};
struct CountLeadingZeros {
  template <typename T>
  static std::uint32_t of(T a) {
    return static_cast<std::uint32_t>(std::countl_zero(a));
  }
};
struct ReverseBits {
  template <typename T>
  static T of(T a) {
    T result = 0;
    for (std::size_t bit = 0; bit < 8 * sizeof(T); ++bit) {
      result = static_cast<T>(result << 1 | (a >> bit & 1));
    }
    return result;
  }
};
// The highest bit that differs from the sign; all ones if there is none.
template <bool ShiftAmount>
struct FindLeadingBit {
  template <typename T>
  static std::uint32_t of(T a) {
    using U = std::make_unsigned_t<T>;
    const auto bits = static_cast<U>(std::is_signed_v<T> && a < 0 ? ~static_cast<U>(a) : static_cast<U>(a));
    if (bits == 0) {
      return ~0U;
    }
    const auto zeros = static_cast<std::uint32_t>(std::countl_zero(bits));
    return ShiftAmount ? zeros : static_cast<std::uint32_t>(8 * sizeof(T)) - 1 - zeros;
  }
};
// Position and length are the low bytes of b and c.
struct ExtractField {
  template <typename T>
  static T of(T a, std::uint32_t b, std::uint32_t c) {
    constexpr std::uint32_t width = 8 * sizeof(T);
    using U = std::make_unsigned_t<T>;
    const std::uint32_t position = b & 255;
    const std::uint32_t length = c & 255;
    if (length == 0) {
      return 0;
    }
    const U field = position >= width ? U{0} : static_cast<U>(static_cast<U>(a) >> position);
    const U ones = length >= width ? static_cast<U>(~U{0}) : static_cast<U>((U{1} << length) - 1);
    const std::uint32_t sign_at = std::min(position + length - 1, width - 1);
    const bool negative = std::is_signed_v<T> && (static_cast<U>(a) >> sign_at & 1) != 0;
    // Bits above the top of a are copies of its sign.
    const U above =
        position >= width ? static_cast<U>(~U{0}) : static_cast<U>(~(static_cast<U>(~U{0}) >> position));
    const U extended = negative ? static_cast<U>(field | above) : field;
    return static_cast<T>((extended & ones) | (negative ? static_cast<U>(~ones) : U{0}));
  }
};

// operands: result, a, b, position, length
template <typename T>
void insert_field(Warp& warp, const Instruction& instruction, LaneMask mask) {
  const T* a = warp.source<T>(instruction.operands[1]);
  const T* b = warp.source<T>(instruction.operands[2]);
  const auto* positions = warp.source<std::uint32_t>(instruction.operands[3]);
  const auto* lengths = warp.source<std::uint32_t>(instruction.operands[4]);
  set_lanes(warp.destination<T>(instruction.operands[0]), mask, [=](int l) {
    constexpr std::uint32_t width = 8 * sizeof(T);
    const std::uint32_t position = positions[l] & 255;
    const std::uint32_t length = lengths[l] & 255;
    const T ones = length >= width ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << length) - 1);
    const T place = position >= width ? T{0} : static_cast<T>(ones << position);
    const T field = position >= width ? T{0} : static_cast<T>(a[l] << position);
    return static_cast<T>((b[l] & ~place) | (field & place));
  });
}

// Bit i of the table is the result where the bits of a, b, c spell i.
void logic_by_table(Warp& warp, const Instruction& instruction, LaneMask mask) {
  const auto* a = warp.source<std::uint32_t>(instruction.operands[1]);
  const auto* b = warp.source<std::uint32_t>(instruction.operands[2]);
  const auto* c = warp.source<std::uint32_t>(instruction.operands[3]);
  std::array<std::uint32_t, 8> chosen{};
  for (std::uint32_t i = 0; i < 8; ++i) {
    chosen[i] = (instruction.immediate >> i & 1) != 0 ? ~0U : 0U;
  }
  set_lanes(warp.destination<std::uint32_t>(instruction.operands[0]), mask, [=](int l) {
    std::uint32_t result = 0;
    for (std::uint32_t i = 0; i < 8; ++i) {
      const std::uint32_t bits_a = (i & 4) != 0 ? a[l] : ~a[l];
      const std::uint32_t bits_b = (i & 2) != 0 ? b[l] : ~b[l];
      const std::uint32_t bits_c = (i & 1) != 0 ? c[l] : ~c[l];
      result |= chosen[i] & bits_a & bits_b & bits_c;
    }
    return result;
  });
}

// Each nibble of the selector picks one of the 8 bytes of b:a; its highest bit asks for copies of that byte's
// sign.
struct PermuteBytes {
  static std::uint32_t of(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
    const std::uint64_t bytes = static_cast<std::uint64_t>(b) << 32 | a;
    std::uint32_t result = 0;
    for (std::uint32_t i = 0; i < 4; ++i) {
      const std::uint32_t nibble = selector >> (4 * i);
      const auto byte = static_cast<std::uint32_t>(bytes >> (8 * (nibble & 7))) & 255U;
      const std::uint32_t sign = (byte & 128U) != 0 ? 255U : 0U;
      result |= ((nibble & 8) != 0 ? sign : byte) << (8 * i);
    }
    return result;
  }
};

template <typename Operation>
void decode_logic(Decoding& decoding) {
  const ScalarType type = decoding.type_of({ScalarType::b16, ScalarType::b32, ScalarType::b64});
  take_operands(decoding, type, 2);
  decoding.result.execute =
      for_size(decoding, type, []<typename T>(T) -> Handler { return binary<T, T, T, Operation>; });
}

template <typename Operation>
void decode_not(Decoding& decoding) {
  const ScalarType type = decoding.type_of({ScalarType::b16, ScalarType::b32, ScalarType::b64});
  take_operands(decoding, type, 1);
  decoding.result.execute =
      for_size(decoding, type, []<typename T>(T) -> Handler { return unary<T, T, Operation>; });
}

void decode_lop3(Decoding& decoding) {
  const ScalarType type = decoding.type_of({ScalarType::b32});
  decoding.expect_operands(5);
  decoding.result.operands[0] = decoding.destination(0, type);
  for (std::size_t i = 1; i < 4; ++i) {
    decoding.result.operands[i] = decoding.source(i, type);
  }
  decoding.result.immediate = static_cast<std::uint32_t>(decoding.immediate(4));
  decoding.result.execute = logic_by_table;
}

template <typename Operation>
void decode_shift(Decoding& decoding) {
  const ScalarType type = decoding.type();
  decoding.expect_operands(3);
  decoding.result.operands[0] = decoding.destination(0, type);
  decoding.result.operands[1] = decoding.source(1, type);
  decoding.result.operands[2] = decoding.source(2, ScalarType::u32);
  decoding.result.execute = for_integer(
      decoding, type, []<typename T>(T) -> Handler { return binary<T, T, std::uint32_t, Operation>; });
}

template <typename Operation>
constexpr Handler word_ternary =
    ternary<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, Operation>;

void decode_funnel_shift(Decoding& decoding) {
  const bool left = decoding.take_one_of({"l", "r"}) == "l";
  const bool clamp = decoding.take_one_of({"clamp", "wrap"}) == "clamp";
  take_operands(decoding, decoding.type_of({ScalarType::b32}), 3);
  const Handler clamped = left ? word_ternary<Clamped<FunnelLeft>> : word_ternary<Clamped<FunnelRight>>;
  const Handler wrapped = left ? word_ternary<Wrapped<FunnelLeft>> : word_ternary<Wrapped<FunnelRight>>;
  decoding.result.execute = clamp ? clamped : wrapped;
}

void decode_permute(Decoding& decoding) {
  take_operands(decoding, decoding.type_of({ScalarType::b32}), 3);
  decoding.result.execute = word_ternary<PermuteBytes>;
}

void decode_extract(Decoding& decoding) {
  const ScalarType type =
      decoding.type_of({ScalarType::u32, ScalarType::s32, ScalarType::u64, ScalarType::s64});
  decoding.expect_operands(4);
  auto& operands = decoding.result.operands;
  operands[0] = decoding.destination(0, type);
  operands[1] = decoding.source(1, type);
  operands[2] = decoding.source(2, ScalarType::u32);
  operands[3] = decoding.source(3, ScalarType::u32);
  decoding.result.execute = for_integer(decoding, type, []<typename T>(T) -> Handler {
    return ternary<T, T, std::uint32_t, std::uint32_t, ExtractField>;
  });
}

void decode_insert(Decoding& decoding) {
  const ScalarType type = decoding.type_of({ScalarType::b32, ScalarType::b64});
  decoding.expect_operands(5);
  auto& operands = decoding.result.operands;
  operands[0] = decoding.destination(0, type);
  operands[1] = decoding.source(1, type);
  operands[2] = decoding.source(2, type);
  operands[3] = decoding.source(3, ScalarType::u32);
  operands[4] = decoding.source(4, ScalarType::u32);
  decoding.result.execute =
      for_size(decoding, type, []<typename T>(T) -> Handler { return insert_field<T>; });
}

// The result is a number of bits or a position, always 32 bits wide.
template <typename Operation>
void decode_count(Decoding& decoding) {
  const ScalarType type = decoding.type_of(
      {ScalarType::b32, ScalarType::b64, ScalarType::u32, ScalarType::s32, ScalarType::u64, ScalarType::s64});
  decoding.expect_operands(2);
  decoding.result.operands[0] = decoding.destination(0, ScalarType::u32);
  decoding.result.operands[1] = decoding.source(1, type);
  decoding.result.execute = for_integer(decoding, type, []<typename T>(T) -> Handler {
    if constexpr (std::is_same_v<Operation, CountOnes> || std::is_same_v<Operation, CountLeadingZeros>) {
      return unary<std::uint32_t, std::make_unsigned_t<T>, Operation>;
    } else {
      return unary<std::uint32_t, T, Operation>;
    }
  });
}

void decode_find(Decoding& decoding) {
  if (decoding.take("shiftamt")) {
    decode_count<FindLeadingBit<true>>(decoding);
  } else {
    decode_count<FindLeadingBit<false>>(decoding);
  }
}

}  // namespace

void add_bit_opcodes(OpcodeTable& table) {
  table.add("and", {TypeClass::integer}, decode_logic<And>);
  table.add("or", {TypeClass::integer}, decode_logic<Or>);
  table.add("xor", {TypeClass::integer}, decode_logic<ExclusiveOr>);
  table.add("not", {TypeClass::integer}, decode_not<Not>);
  table.add("cnot", {TypeClass::integer}, decode_not<LogicalNot>);
  table.add("lop3", {TypeClass::integer}, decode_lop3);
  table.add("shl", {TypeClass::integer}, decode_shift<ShiftLeft>);
  table.add("shr", {TypeClass::integer}, decode_shift<ShiftRight>);
  table.add("shf", {TypeClass::integer}, decode_funnel_shift);
  table.add("prmt", {TypeClass::integer}, decode_permute);
  table.add("bfe", {TypeClass::integer}, decode_extract);
  table.add("bfi", {TypeClass::integer}, decode_insert);
  table.add("popc", {TypeClass::integer}, decode_count<CountOnes>);
  table.add("clz", {TypeClass::integer}, decode_count<CountLeadingZeros>);
  table.add("brev", {TypeClass::integer}, decode_not<ReverseBits>);
  table.add("bfind", {TypeClass::integer}, decode_find);
}

}  // namespace hcp::ptx
