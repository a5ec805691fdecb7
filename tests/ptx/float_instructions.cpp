// add, sub, mul, fma, div, rcp, sqrt, rsqrt, ex2, lg2, tanh, min, max, abs, neg, copysign on f32 and f64
#include <cmath>

#include "tests/ptx/lane_operations.hpp"
#include "tests/ptx/opcode_table.hpp"
#include "tests/ptx/rounding.hpp"

namespace hcp::ptx {

namespace {

struct Add {
  template <typename T>
  static T of(T a, T b) {
    return a + b;
  }
};
struct Subtract {
  template <typename T>
  static T of(T a, T b) {
    return a - b;
  }
};
struct Multiply {
  template <typename T>
  static T of(T a, T b) {
    return a * b;
  }
};
struct MultiplyAdd {
  static float of(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
  static double of(double a, double b, double c) { return __builtin_fma(a, b, c); }
};
// In the directed modes: the double product of two floats is exact, the sum rounded to odd.
template <Rounding rounding>
struct DirectedAdd {
  static float of(float a, float b) { return round_to_float(add_to_odd(a, b), rounding); }
};
template <Rounding rounding>
struct DirectedSubtract {
  static float of(float a, float b) { return round_to_float(add_to_odd(a, -b), rounding); }
};
template <Rounding rounding>
struct DirectedMultiply {
  static float of(float a, float b) {
    return round_to_float(static_cast<double>(a) * static_cast<double>(b), rounding);
  }
};
template <Rounding rounding>
struct DirectedMultiplyAdd {
  static float of(float a, float b, float c) {
    return round_to_float(add_to_odd(static_cast<double>(a) * static_cast<double>(b), c), rounding);
  }
};
struct Divide {
  template <typename T>
  static T of(T a, T b) {
    return a / b;
  }
};
struct Reciprocal {
  template <typename T>
  static T of(T a) {
    return T{1} / a;
  }
};
// rcp.approx.ftz.f64 sees and gives the upper halves only.
struct UpperReciprocal {
  static double of(double a) {
    const double flushed = std::fabs(a) < 0x1p-1022 ? std::copysign(0.0, a) : a;
    const double upper = std::bit_cast<double>(std::bit_cast<std::uint64_t>(flushed) & ~0xffffffffULL);
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(1.0 / upper) & ~0xffffffffULL);
  }
};
struct SquareRoot {
  template <typename T>
  static T of(T a) {
    return std::sqrt(a);
  }
};
struct ReciprocalSquareRoot {
  template <typename T>
  static T of(T a) {
    return T{1} / std::sqrt(a);
  }
};
struct PowerOfTwo {
  static float of(float a) { return std::exp2(a); }
};
struct BinaryLogarithm {
  static float of(float a) { return std::log2(a); }
};
struct Sine {
  static float of(float a) { return std::sin(a); }
};
struct Cosine {
  static float of(float a) { return std::cos(a); }
};
struct HyperbolicTangent {
  static float of(float a) { return std::tanh(a); }
};
// The other operand where one is NaN; -0 < +0.
struct Minimum {
  template <typename T>
  static T of(T a, T b) {
    const bool a_is_less = a < b || (a == b && std::signbit(a));
    return b != b ? a : a_is_less ? a : b;
  }
};
struct Maximum {
  template <typename T>
  static T of(T a, T b) {
    const bool a_is_greater = a > b || (a == b && !std::signbit(a));
    return b != b ? a : a_is_greater ? a : b;
  }
};
// .NaN: NaN where one is NaN.
template <typename Choice>
struct PropagatingNan {
  template <typename T>
  static T of(T a, T b) {
    return a != a || b != b ? std::numeric_limits<T>::quiet_NaN() : Choice::of(a, b);
  }
};
struct Negate {
  template <typename T>
  static T of(T a) {
    return -a;
  }
};
struct Absolute {
  template <typename T>
  static T of(T a) {
    return std::fabs(a);
  }
};
// The sign of a, the rest of b.
struct CopySign {
  template <typename T>
  static T of(T a, T b) {
    return std::copysign(b, a);
  }
};

template <typename Operation>
struct Flushed {
  template <typename... T>
  static float of(T... values) {
    return flush(Operation::of(flush(values)...));
  }
};
template <typename Operation>
struct Saturated {
  template <typename... T>
  static auto of(T... values) {
    return saturate(Operation::of(values...));
  }
};

template <typename T, typename Operation, int Sources>
Handler plain() {
  if constexpr (Sources == 1) {
    return unary<T, T, Operation>;
  } else if constexpr (Sources == 2) {
    return binary<T, T, T, Operation>;
  } else {
    return ternary<T, T, T, T, Operation>;
  }
}

template <typename Operation, int Sources>
Handler with_options(bool ftz, bool sat) {
  if (ftz) {
    return sat ? plain<float, Saturated<Flushed<Operation>>, Sources>()
               : plain<float, Flushed<Operation>, Sources>();
  }
  return sat ? plain<float, Saturated<Operation>, Sources>() : plain<float, Operation, Sources>();
}

// {.ftz}{.sat}.f32 or .f64, which knows neither
template <typename Operation, int Sources>
void decode_plain(Decoding& decoding) {
  const bool ftz = decoding.take("ftz");
  const bool sat = decoding.take("sat");
  const ScalarType type = decoding.type_of({ScalarType::f32, ScalarType::f64});
  take_operands(decoding, type, Sources);
  if (type == ScalarType::f64 && (ftz || sat)) {
    decoding.refuse("an option of f64");
  }
  decoding.result.execute = type == ScalarType::f64 ? plain<double, Operation, Sources>()
                                                    : with_options<Operation, Sources>(ftz, sat);
}

// f32 only
template <typename Operation, int Sources>
void decode_single(Decoding& decoding) {
  const bool ftz = decoding.take("ftz");
  const bool sat = decoding.take("sat");
  take_operands(decoding, decoding.type_of({ScalarType::f32}), Sources);
  decoding.result.execute = with_options<Operation, Sources>(ftz, sat);
}

// {.rn|.rz|.rm|.rp}; the directed modes are known for f32
template <typename Nearest, template <Rounding> typename Directed, int Sources>
void decode_rounded(Decoding& decoding) {
  const std::string rounding = decoding.take_one_of({"rn", "rz", "rm", "rp"});
  if (rounding.empty() && Sources == 3) {
    decoding.refuse("fma without rounding");
  }
  if (rounding == "rz") {
    decode_single<Directed<Rounding::to_zero>, Sources>(decoding);
  } else if (rounding == "rm") {
    decode_single<Directed<Rounding::down>, Sources>(decoding);
  } else if (rounding == "rp") {
    decode_single<Directed<Rounding::up>, Sources>(decoding);
  } else {
    decode_plain<Nearest, Sources>(decoding);
  }
}

// .approx (and div's .full) of f32, or .rn: both to nearest here
template <typename Operation, int Sources>
void decode_approximate(Decoding& decoding) {
  if (decoding.take("approx") || (Sources == 2 && decoding.take("full"))) {
    decode_single<Operation, Sources>(decoding);
  } else {
    decoding.require("rn");
    decode_plain<Operation, Sources>(decoding);
  }
}

void decode_reciprocal(Decoding& decoding) {
  const auto& modifiers = decoding.syntax().modifiers;
  if (modifiers.size() == 3 && modifiers[0] == "approx" && modifiers[2] == "f64") {
    decoding.require("approx");
    decoding.require("ftz");
    take_operands(decoding, decoding.type(), 1);
    decoding.result.execute = unary<double, double, UpperReciprocal>;
  } else {
    decode_approximate<Reciprocal, 1>(decoding);
  }
}

// .approx{.ftz}.f32 and nothing else
template <typename Operation>
void decode_function(Decoding& decoding) {
  decoding.require("approx");
  decode_single<Operation, 1>(decoding);
}

template <typename Operation>
void decode_choice(Decoding& decoding) {
  const bool ftz = decoding.take("ftz");
  if (!decoding.take("NaN")) {
    const ScalarType type = decoding.type_of({ScalarType::f32, ScalarType::f64});
    take_operands(decoding, type, 2);
    decoding.result.execute =
        type == ScalarType::f64 ? plain<double, Operation, 2>() : with_options<Operation, 2>(ftz, false);
    return;
  }
  take_operands(decoding, decoding.type_of({ScalarType::f32}), 2);
  decoding.result.execute = with_options<PropagatingNan<Operation>, 2>(ftz, false);
}

}  // namespace

void add_float_opcodes(OpcodeTable& table) {
  const auto add = [&](std::string_view opcode, DecodeFunction decode) {
    table.add(opcode, {TypeClass::single_or_double}, decode);
  };
  add("add", decode_rounded<Add, DirectedAdd, 2>);
  add("sub", decode_rounded<Subtract, DirectedSubtract, 2>);
  add("mul", decode_rounded<Multiply, DirectedMultiply, 2>);
  add("fma", decode_rounded<MultiplyAdd, DirectedMultiplyAdd, 3>);
  add("mad", decode_rounded<MultiplyAdd, DirectedMultiplyAdd, 3>);
  add("div", decode_approximate<Divide, 2>);
  add("rcp", decode_reciprocal);
  add("sqrt", decode_approximate<SquareRoot, 1>);
  add("rsqrt", decode_function<ReciprocalSquareRoot>);
  add("ex2", decode_function<PowerOfTwo>);
  add("lg2", decode_function<BinaryLogarithm>);
  add("sin", decode_function<Sine>);
  add("cos", decode_function<Cosine>);
  add("tanh", decode_function<HyperbolicTangent>);
  add("min", decode_choice<Minimum>);
  add("max", decode_choice<Maximum>);
  add("neg", decode_plain<Negate, 1>);
  add("abs", decode_plain<Absolute, 1>);
  add("copysign", decode_plain<CopySign, 2>);
}

}  // namespace hcp::ptx
