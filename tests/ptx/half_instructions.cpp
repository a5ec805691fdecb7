// add, sub, mul, fma, min, max, neg, abs, ex2, tanh on f16, bf16 and pairs of them
#include <cmath>
#include <type_traits>

#include "tests/ptx/lane_operations.hpp"
#include "tests/ptx/opcode_table.hpp"
#include "tests/ptx/rounding.hpp"

namespace hcp::ptx {

namespace {

// Results are exact or rounded to odd; narrowing rounds them once.
struct Add {
  static double of(double a, double b) { return add_to_odd(a, b); }
};
struct Subtract {
  static double of(double a, double b) { return add_to_odd(a, -b); }
};
struct Multiply {
  static double of(double a, double b) { return a * b; }
};
struct MultiplyAdd {
  static double of(double a, double b, double c) { return add_to_odd(a * b, c); }
};
struct Minimum {
  static double of(double a, double b) {
    return std::isnan(b) || (!std::isnan(a) && (a < b || (a == b && std::signbit(a)))) ? a : b;
  }
};
struct Maximum {
  static double of(double a, double b) {
    return std::isnan(b) || (!std::isnan(a) && (a > b || (a == b && !std::signbit(a)))) ? a : b;
  }
};
template <typename Choice>
struct PropagatingNan {
  static double of(double a, double b) { return std::isnan(a) ? a : std::isnan(b) ? b : Choice::of(a, b); }
};
struct Negate {
  static double of(double a) { return -a; }
};
struct Absolute {
  static double of(double a) { return std::fabs(a); }
};
struct PowerOfTwo {
  static double of(double a) { return std::exp2(a); }
};
struct HyperbolicTangent {
  static double of(double a) { return std::tanh(a); }
};

enum class Limit { none, unit_interval, not_negative };

// A register holds `Values` numbers per lane, next to each other.
template <typename Format, int Values, int Sources, Limit limit, typename Operation>
void per_half(Warp& warp, const Instruction& instruction, LaneMask mask) {
  std::array<const std::uint16_t*, 3> sources{};
  for (std::size_t i = 0; i < Sources; ++i) {
    sources[i] = warp.source<std::uint16_t>(instruction.operands[i + 1]);
  }
  auto* result = warp.destination<std::uint16_t>(instruction.operands[0]);
  for_each_lane(mask, [&](int lane) {
    for (int i = lane * Values; i < (lane + 1) * Values; ++i) {
      const auto value = [&](std::size_t source) {
        return static_cast<double>(Format::widen(sources[source][i]));
      };
      double exact = 0;
      if constexpr (Sources == 1) {
        exact = Operation::of(value(0));
      } else if constexpr (Sources == 2) {
        exact = Operation::of(value(0), value(1));
      } else {
        exact = Operation::of(value(0), value(1), value(2));
      }
      if constexpr (limit == Limit::unit_interval) {
        exact = saturate(exact);
      } else if constexpr (limit == Limit::not_negative) {
        exact = exact < 0 ? 0.0 : exact;
      }
      result[i] = Format::narrow(exact);
    }
  });
}

template <int Sources, Limit limit, typename Operation>
void decode_limited(Decoding& decoding) {
  const ScalarType type =
      decoding.type_of({ScalarType::f16, ScalarType::f16x2, ScalarType::bf16, ScalarType::bf16x2});
  take_operands(decoding, type, Sources);
  const bool pair = bytes_of(type) == 4;
  if (type == ScalarType::f16 || type == ScalarType::f16x2) {
    decoding.result.execute = pair ? per_half<Float16, 2, Sources, limit, Operation>
                                   : per_half<Float16, 1, Sources, limit, Operation>;
  } else {
    decoding.result.execute = pair ? per_half<BFloat16, 2, Sources, limit, Operation>
                                   : per_half<BFloat16, 1, Sources, limit, Operation>;
  }
}

template <int Sources, typename Operation>
void decode_arithmetic(Decoding& decoding) {
  const bool rounding = decoding.take("rn");
  if (Sources == 3 && !rounding) {
    decoding.refuse("fma without rounding");
  }
  if (decoding.take("sat")) {
    decode_limited<Sources, Limit::unit_interval, Operation>(decoding);
  } else if (Sources == 3 && decoding.take("relu")) {
    decode_limited<Sources, Limit::not_negative, Operation>(decoding);
  } else {
    decode_limited<Sources, Limit::none, Operation>(decoding);
  }
}

template <typename Operation>
void decode_choice(Decoding& decoding) {
  if (decoding.take("NaN")) {
    decode_limited<2, Limit::none, PropagatingNan<Operation>>(decoding);
  } else {
    decode_limited<2, Limit::none, Operation>(decoding);
  }
}

template <typename Operation>
void decode_sign(Decoding& decoding) {
  decode_limited<1, Limit::none, Operation>(decoding);
}

template <typename Operation>
void decode_function(Decoding& decoding) {
  decoding.require("approx");
  decode_limited<1, Limit::none, Operation>(decoding);
}

}  // namespace

void add_half_opcodes(OpcodeTable& table) {
  const auto add = [&](std::string_view opcode, DecodeFunction decode) {
    table.add(opcode, {TypeClass::half}, decode);
  };
  add("add", decode_arithmetic<2, Add>);
  add("sub", decode_arithmetic<2, Subtract>);
  add("mul", decode_arithmetic<2, Multiply>);
  add("fma", decode_arithmetic<3, MultiplyAdd>);
  add("min", decode_choice<Minimum>);
  add("max", decode_choice<Maximum>);
  add("neg", decode_sign<Negate>);
  add("abs", decode_sign<Absolute>);
  add("ex2", decode_function<PowerOfTwo>);
  add("tanh", decode_function<HyperbolicTangent>);
}

}  // namespace hcp::ptx
