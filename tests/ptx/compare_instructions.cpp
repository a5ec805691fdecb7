// setp, selp, slct, and logic on predicates
#include <array>
#include <cmath>
#include <string_view>
#include <type_traits>

#include "tests/ptx/lane_operations.hpp"
#include "tests/ptx/opcode_table.hpp"
#include "tests/ptx/rounding.hpp"

namespace hcp::ptx {

namespace {

enum class Combine : std::uint32_t { none, and_, or_, xor_ };

LaneMask combine(Combine how, LaneMask a, LaneMask b) {
  switch (how) {
    case Combine::and_:
      return a & b;
    case Combine::or_:
      return a | b;
    case Combine::xor_:
      return a ^ b;
    case Combine::none:
      return a;
  }
  return a;
}

template <typename T>
bool is_unordered(T a, T b) {
  return a != a || b != b;
}

struct Equal {
  template <typename T>
  static bool of(T a, T b) {
    return a == b;
  }
};
// Where one is NaN this and all other plain comparisons are false.
struct NotEqual {
  template <typename T>
  static bool of(T a, T b) {
    return a < b || a > b;
  }
};
struct Less {
  template <typename T>
  static bool of(T a, T b) {
    return a < b;
  }
};
struct LessOrEqual {
  template <typename T>
  static bool of(T a, T b) {
    return a <= b;
  }
};
struct Greater {
  template <typename T>
  static bool of(T a, T b) {
    return a > b;
  }
};
struct GreaterOrEqual {
  template <typename T>
  static bool of(T a, T b) {
    return a >= b;
  }
};
struct BothNumbers {
  template <typename T>
  static bool of(T a, T b) {
    return !is_unordered(a, b);
  }
};
struct OneNan {
  template <typename T>
  static bool of(T a, T b) {
    return is_unordered(a, b);
  }
};
template <typename Comparison>
struct OrUnordered {
  template <typename T>
  static bool of(T a, T b) {
    return is_unordered(a, b) || Comparison::of(a, b);
  }
};
template <typename Comparison>
struct Flushed {
  static bool of(float a, float b) { return Comparison::of(flush(a), flush(b)); }
};

constexpr std::array<std::uint32_t, warp_lanes> lane_bits = [] {
  std::array<std::uint32_t, warp_lanes> bits{};
  for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
    bits[lane] = 1U << lane;
  }
  return bits;
}();

// operands: p, q (may not exist), a, b, c (may not exist)
void set_predicates(Warp& warp, const Instruction& instruction, LaneMask mask, LaneMask result) {
  const Operand other = instruction.operands[4];
  const LaneMask c = other.exists() ? warp.predicate(other) : 0;
  const auto how = static_cast<Combine>(instruction.immediate);
  warp.set_predicate(instruction.operands[0], combine(how, result, c), mask);
  if (instruction.operands[1].exists()) {
    warp.set_predicate(instruction.operands[1], combine(how, ~result, c), mask);
  }
}

template <typename T, typename Comparison>
void compare(Warp& warp, const Instruction& instruction, LaneMask mask) {
  const T* a = warp.source<T>(instruction.operands[2]);
  const T* b = warp.source<T>(instruction.operands[3]);
  std::uint32_t result = 0;
  for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
    result |= Comparison::of(a[lane], b[lane]) ? lane_bits[lane] : 0;
  }
  set_predicates(warp, instruction, mask, result);
}

template <typename Format, typename Comparison>
void compare_halves(Warp& warp, const Instruction& instruction, LaneMask mask) {
  const auto* a = warp.source<std::uint16_t>(instruction.operands[2]);
  const auto* b = warp.source<std::uint16_t>(instruction.operands[3]);
  std::uint32_t result = 0;
  for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
    result |= Comparison::of(Format::widen(a[lane]), Format::widen(b[lane])) ? lane_bits[lane] : 0;
  }
  set_predicates(warp, instruction, mask, result);
}

template <typename Comparison>
Handler float_handler(ScalarType type, bool ftz) {
  switch (type) {
    case ScalarType::f64:
      return compare<double, Comparison>;
    case ScalarType::f16:
      return compare_halves<Float16, Comparison>;
    case ScalarType::bf16:
      return compare_halves<BFloat16, Comparison>;
    default:
      return ftz ? compare<float, Flushed<Comparison>> : compare<float, Comparison>;
  }
}

Handler float_comparison(const Decoding& decoding, std::string_view name, ScalarType type, bool ftz) {
  if (name == "num" || name == "nan") {
    return name == "num" ? float_handler<BothNumbers>(type, ftz) : float_handler<OneNan>(type, ftz);
  }
  const bool unordered = name.size() == 3 && name.back() == 'u';
  const std::string_view plain = unordered ? name.substr(0, 2) : name;
  const auto choose = [&]<typename Comparison>(Comparison) {
    return unordered ? float_handler<OrUnordered<Comparison>>(type, ftz)
                     : float_handler<Comparison>(type, ftz);
  };
  if (plain == "eq") {
    return choose(Equal{});
  }
  if (plain == "ne") {
    return choose(NotEqual{});
  }
  if (plain == "lt") {
    return choose(Less{});
  }
  if (plain == "le") {
    return choose(LessOrEqual{});
  }
  if (plain == "gt") {
    return choose(Greater{});
  }
  if (plain == "ge") {
    return choose(GreaterOrEqual{});
  }
  decoding.refuse("comparison");
}

template <typename Comparison>
Handler integer_handler(const Decoding& decoding, ScalarType type) {
  return for_integer(decoding, type, []<typename T>(T) -> Handler { return compare<T, Comparison>; });
}

Handler integer_comparison(const Decoding& decoding, std::string_view name, ScalarType type) {
  const bool bits = type == ScalarType::b16 || type == ScalarType::b32 || type == ScalarType::b64;
  const bool is_unsigned = type == ScalarType::u16 || type == ScalarType::u32 || type == ScalarType::u64;
  if (name == "eq") {
    return integer_handler<Equal>(decoding, type);
  }
  if (name == "ne") {
    return integer_handler<NotEqual>(decoding, type);
  }
  if (!bits && (name == "lt" || (name == "lo" && is_unsigned))) {
    return integer_handler<Less>(decoding, type);
  }
  if (!bits && (name == "le" || (name == "ls" && is_unsigned))) {
    return integer_handler<LessOrEqual>(decoding, type);
  }
  if (!bits && (name == "gt" || (name == "hi" && is_unsigned))) {
    return integer_handler<Greater>(decoding, type);
  }
  if (!bits && (name == "ge" || (name == "hs" && is_unsigned))) {
    return integer_handler<GreaterOrEqual>(decoding, type);
  }
  decoding.refuse("comparison");
}

// setp.comparison{.combination}{.ftz}.type p{|q}, a, b{, {!}c}
void decode_setp(Decoding& decoding) {
  const std::string name = decoding.take_one_of({"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs",
                                                 "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"});
  const std::string combination = decoding.take_one_of({"and", "or", "xor"});
  const bool ftz = decoding.take("ftz");
  const ScalarType type = decoding.type();
  decoding.expect_operands(combination.empty() ? 3 : 4);
  Instruction& result = decoding.result;
  const OperandSyntax& destinations = decoding.operand(0);
  if (destinations.negated) {
    decoding.refuse("a negated result");
  }
  result.operands[0] = decoding.predicate(destinations.word);
  if (!destinations.second.empty()) {
    result.operands[1] = decoding.predicate(destinations.second);
  }
  result.operands[2] = decoding.source(1, type);
  result.operands[3] = decoding.source(2, type);
  if (!combination.empty()) {
    result.operands[4] = decoding.predicate(3);
    result.immediate = static_cast<std::uint32_t>(combination == "and"  ? Combine::and_
                                                  : combination == "or" ? Combine::or_
                                                                        : Combine::xor_);
  }
  if (type == ScalarType::f16x2 || type == ScalarType::bf16x2 || type == ScalarType::tf32 ||
      (ftz && type != ScalarType::f32)) {
    decoding.refuse("type");
  }
  result.execute =
      is_float(type) ? float_comparison(decoding, name, type, ftz) : integer_comparison(decoding, name, type);
}

// operands: result, a, b, predicate
template <typename T>
void select(Warp& warp, const Instruction& instruction, LaneMask mask) {
  const T* a = warp.source<T>(instruction.operands[1]);
  const T* b = warp.source<T>(instruction.operands[2]);
  const LaneMask chosen = warp.predicate(instruction.operands[3]);
  set_lanes(warp.destination<T>(instruction.operands[0]), mask,
            [=](int l) { return (chosen >> l & 1) != 0 ? a[l] : b[l]; });
}

void decode_selp(Decoding& decoding) {
  const ScalarType type = decoding.type();
  decoding.expect_operands(4);
  auto& operands = decoding.result.operands;
  operands[0] = decoding.destination(0, type);
  operands[1] = decoding.source(1, type);
  operands[2] = decoding.source(2, type);
  operands[3] = decoding.predicate(3);
  decoding.result.execute = for_size(decoding, type, []<typename T>(T) -> Handler { return select<T>; });
}

struct ChooseBySign {
  template <typename T, typename C>
  static T of(T a, T b, C c) {
    return c >= C{0} ? a : b;
  }
};
struct ChooseByFlushedSign {
  template <typename T>
  static T of(T a, T b, float c) {
    return flush(c) >= 0.0F ? a : b;
  }
};

// slct{.ftz}.type.{s32|f32}: a where c >= 0, else b (also for NaN)
void decode_slct(Decoding& decoding) {
  const bool ftz = decoding.take("ftz");
  const ScalarType type = decoding.type();
  const ScalarType by = decoding.type_of({ScalarType::s32, ScalarType::f32});
  decoding.expect_operands(4);
  auto& operands = decoding.result.operands;
  operands[0] = decoding.destination(0, type);
  operands[1] = decoding.source(1, type);
  operands[2] = decoding.source(2, type);
  operands[3] = decoding.source(3, by);
  if (ftz && by != ScalarType::f32) {
    decoding.refuse("modifier .ftz");
  }
  decoding.result.execute = for_size(decoding, type, [&]<typename T>(T) -> Handler {
    if (by == ScalarType::s32) {
      return ternary<T, T, T, std::int32_t, ChooseBySign>;
    }
    return ftz ? ternary<T, T, T, float, ChooseByFlushedSign> : ternary<T, T, T, float, ChooseBySign>;
  });
}

// operands: result, a, b
template <Combine how>
void combine_predicates(Warp& warp, const Instruction& instruction, LaneMask mask) {
  const LaneMask a = warp.predicate(instruction.operands[1]);
  warp.set_predicate(instruction.operands[0], combine(how, a, warp.predicate(instruction.operands[2])), mask);
}

template <Combine how>
void decode_predicate_logic(Decoding& decoding) {
  (void)decoding.type_of({ScalarType::pred});
  decoding.expect_operands(3);
  decoding.result.operands[0] = decoding.predicate(std::size_t{0});
  decoding.result.operands[1] = decoding.predicate(std::size_t{1});
  decoding.result.operands[2] = decoding.predicate(std::size_t{2});
  decoding.result.execute = combine_predicates<how>;
}

// not and mov are a xor 0 or 1; mov also takes a number
template <bool inverts>
void decode_predicate_copy(Decoding& decoding) {
  (void)decoding.type_of({ScalarType::pred});
  decoding.expect_operands(2);
  auto& operands = decoding.result.operands;
  operands[0] = decoding.predicate(std::size_t{0});
  if (decoding.symbol(decoding.operand(1).word) == nullptr && !inverts) {
    operands[1] = decoding.kernel().constant(decoding.immediate(1) != 0 ? all_lanes : 0, 4);
  } else {
    operands[1] = decoding.predicate(std::size_t{1});
  }
  operands[2] = decoding.kernel().constant(inverts ? all_lanes : 0, 4);
  decoding.result.execute = combine_predicates<Combine::xor_>;
}

}  // namespace

void add_compare_opcodes(OpcodeTable& table) {
  table.add("setp", decode_setp);
  table.add("selp", {TypeClass::integer, TypeClass::single_or_double, TypeClass::half}, decode_selp);
  table.add("slct", {TypeClass::integer, TypeClass::single_or_double}, decode_slct);
  table.add("and", {TypeClass::predicate}, decode_predicate_logic<Combine::and_>);
  table.add("or", {TypeClass::predicate}, decode_predicate_logic<Combine::or_>);
  table.add("xor", {TypeClass::predicate}, decode_predicate_logic<Combine::xor_>);
  table.add("not", {TypeClass::predicate}, decode_predicate_copy<true>);
  table.add("mov", {TypeClass::predicate}, decode_predicate_copy<false>);
}

}  // namespace hcp::ptx
