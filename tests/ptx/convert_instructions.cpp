// cvt
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tests/ptx/lane_operations.hpp"
#include "tests/ptx/opcode_table.hpp"
#include "tests/ptx/rounding.hpp"

namespace hcp::ptx {

namespace {

/// Values of 32 lanes, in the low bits.
using Row = std::array<std::uint64_t, warp_lanes>;

/// The options of one cvt, as they stand in Instruction::immediate.
struct Options {
  Rounding rounding = Rounding::nearest_even;
  bool to_whole = false;  ///< rni, rzi, rmi, rpi
  bool ftz = false;
  bool sat = false;
  bool relu = false;

  [[nodiscard]] std::uint32_t packed() const {
    return static_cast<std::uint32_t>(rounding) | static_cast<std::uint32_t>(to_whole) << 2 |
           static_cast<std::uint32_t>(ftz) << 3 | static_cast<std::uint32_t>(sat) << 4 |
           static_cast<std::uint32_t>(relu) << 5;
  }
  static Options unpacked(std::uint32_t bits) {
    return {static_cast<Rounding>(bits & 3), (bits >> 2 & 1) != 0, (bits >> 3 & 1) != 0, (bits >> 4 & 1) != 0,
            (bits >> 5 & 1) != 0};
  }
};

template <typename T>
T low_bits(std::uint64_t bits) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(bits);
  } else {
    return static_cast<T>(bits);
  }
}

template <typename T>
std::uint64_t bits_of(T value) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<std::uint32_t>(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<std::uint64_t>(value);
  } else {
    return static_cast<std::uint64_t>(value);  // signed ones fill a wider register with their sign
  }
}

template <typename Register>
void widen_row(const void* registers, Row& row) {
  const auto* values = static_cast<const Register*>(registers);
  for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
    row[lane] = values[lane];
  }
}

// operands: result, a; element_bytes and elements: the widths of their registers
template <auto ConvertLane>
void convert(Warp& warp, const Instruction& instruction, LaneMask mask) {
  Row in;
  const void* source = warp.source<std::uint8_t>(instruction.operands[1]);
  switch (instruction.elements) {
    case 2:
      widen_row<std::uint16_t>(source, in);
      break;
    case 4:
      widen_row<std::uint32_t>(source, in);
      break;
    default:
      widen_row<std::uint64_t>(source, in);
  }
  const Options options = Options::unpacked(instruction.immediate);
  Row out;
  for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
    out[lane] = ConvertLane(in[lane], options);
  }
  const auto store = [&]<typename Register>(Register) {
    set_lanes(warp.destination<Register>(instruction.operands[0]), mask,
              [&](int l) { return static_cast<Register>(out[static_cast<std::size_t>(l)]); });
  };
  switch (instruction.element_bytes) {
    case 2:
      store(std::uint16_t{});
      break;
    case 4:
      store(std::uint32_t{});
      break;
    default:
      store(std::uint64_t{});
  }
}

template <typename From, typename To>
std::uint64_t integer_to_integer(std::uint64_t bits, Options options) {
  const From value = low_bits<From>(bits);
  if (options.sat) {
    const bool below = std::cmp_less(value, std::numeric_limits<To>::min());
    const bool above = std::cmp_greater(value, std::numeric_limits<To>::max());
    return bits_of(below   ? std::numeric_limits<To>::min()
                   : above ? std::numeric_limits<To>::max()
                           : static_cast<To>(value));
  }
  return bits_of(static_cast<To>(value));
}

template <typename From, typename To>
std::uint64_t integer_to_float(std::uint64_t bits, Options) {
  return bits_of(static_cast<To>(low_bits<From>(bits)));
}

template <typename From, typename Format>
std::uint64_t integer_to_half(std::uint64_t bits, Options options) {
  return Format::narrow(static_cast<double>(low_bits<From>(bits)), options.rounding);
}

// The floating-point formats by what widens them to double and narrows to them.
struct Single {
  static constexpr bool is_double = false;
  static double widen(std::uint64_t bits, bool ftz) {
    const auto value = low_bits<float>(bits);
    return ftz ? flush(value) : value;
  }
  static std::uint64_t narrow(double value, Options options) {
    const float rounded = round_to_float(value, options.rounding);
    return bits_of(std::isnan(rounded) ? std::bit_cast<float>(0x7fffffffU)
                   : options.ftz       ? flush(rounded)
                                       : rounded);
  }
};
struct Double {
  static constexpr bool is_double = true;
  static double widen(std::uint64_t bits, bool) { return low_bits<double>(bits); }
  static std::uint64_t narrow(double value, Options) { return bits_of(value); }
};
template <typename Format>
struct Half {
  static constexpr bool is_double = false;
  static double widen(std::uint64_t bits, bool) { return Format::widen(static_cast<std::uint16_t>(bits)); }
  static std::uint64_t narrow(double value, Options options) {
    return Format::narrow(value, options.rounding);
  }
};

double to_whole(double value, Rounding rounding) {
  switch (rounding) {
    case Rounding::to_zero:
      return std::trunc(value);
    case Rounding::down:
      return std::floor(value);
    case Rounding::up:
      return std::ceil(value);
    case Rounding::nearest_even:
      return std::nearbyint(value);
  }
  return value;
}

template <typename From, typename To>
std::uint64_t float_to_float(std::uint64_t bits, Options options) {
  double value = From::widen(bits, options.ftz);
  value = options.to_whole ? to_whole(value, options.rounding) : value;
  value = options.sat ? saturate(value) : value;
  value = options.relu && value < 0 ? 0.0 : value;
  return To::narrow(value, options);
}

// Out of range: the nearest value. NaN: 0, but half of the range where 64 bits are involved.
// @source PTX ISA 9.0, cvt
template <typename From, typename To>
std::uint64_t float_to_integer(std::uint64_t bits, Options options) {
  const double value = to_whole(From::widen(bits, options.ftz), options.rounding);
  constexpr int value_bits = std::numeric_limits<To>::digits;
  if (std::isnan(value)) {
    const bool wide = From::is_double || sizeof(To) == 8;
    return wide ? bits_of(static_cast<To>(std::uint64_t{1} << (8 * sizeof(To) - 1))) : 0;
  }
  if (value >= std::ldexp(1.0, value_bits)) {
    return bits_of(std::numeric_limits<To>::max());
  }
  if (value < static_cast<double>(std::numeric_limits<To>::min())) {
    return bits_of(std::numeric_limits<To>::min());
  }
  return bits_of(static_cast<To>(value));
}

template <typename Make>
Handler for_any_integer(const Decoding& decoding, ScalarType type, Make make) {
  switch (type) {
    case ScalarType::u8:
      return make(std::uint8_t{});
    case ScalarType::s8:
      return make(std::int8_t{});
    default:
      return for_integer(decoding, type, make);
  }
}

template <typename Make>
Handler for_float(const Decoding& decoding, ScalarType type, Make make) {
  switch (type) {
    case ScalarType::f16:
      return make(Half<Float16>{});
    case ScalarType::bf16:
      return make(Half<BFloat16>{});
    case ScalarType::f32:
      return make(Single{});
    case ScalarType::f64:
      return make(Double{});
    default:
      decoding.refuse("type");
  }
}

Handler from_integer(const Decoding& decoding, ScalarType from, ScalarType to) {
  return for_any_integer(decoding, from, [&]<typename From>(From) -> Handler {
    switch (to) {
      case ScalarType::f32:
        return convert<integer_to_float<From, float>>;
      case ScalarType::f64:
        return convert<integer_to_float<From, double>>;
      case ScalarType::f16:
        return convert<integer_to_half<From, Float16>>;
      case ScalarType::bf16:
        return convert<integer_to_half<From, BFloat16>>;
      default:
        return for_any_integer(
            decoding, to, []<typename To>(To) -> Handler { return convert<integer_to_integer<From, To>>; });
    }
  });
}

Handler from_float(const Decoding& decoding, ScalarType from, ScalarType to) {
  return for_float(decoding, from, [&]<typename From>(From) -> Handler {
    if (is_float(to)) {
      return for_float(decoding, to,
                       []<typename To>(To) -> Handler { return convert<float_to_float<From, To>>; });
    }
    return for_any_integer(decoding, to,
                           []<typename To>(To) -> Handler { return convert<float_to_integer<From, To>>; });
  });
}

Options take_options(Decoding& decoding) {
  Options options;
  const std::string rounding = decoding.take_one_of({"rni", "rzi", "rmi", "rpi", "rn", "rz", "rm", "rp"});
  options.to_whole = rounding.size() == 3;
  if (rounding.size() >= 2) {
    options.rounding = rounding[1] == 'n'   ? Rounding::nearest_even
                       : rounding[1] == 'z' ? Rounding::to_zero
                       : rounding[1] == 'm' ? Rounding::down
                                            : Rounding::up;
  }
  options.relu = decoding.take("relu");
  options.ftz = decoding.take("ftz");
  options.sat = decoding.take("sat");
  return options;
}

// What the kinds of conversion cannot do.
void check_options(const Decoding& decoding, const Options& options, ScalarType from, ScalarType to) {
  const bool directed = options.rounding == Rounding::down || options.rounding == Rounding::up;
  const bool inexact = options.rounding != Rounding::nearest_even;
  const bool wide_integer = !is_float(from) && bytes_of(from) == 8;
  const bool half = is_float(to) && bytes_of(to) == 2;
  const bool to_integer = is_float(from) && !is_float(to);
  if ((to_integer && !options.to_whole) || (!is_float(from) && options.to_whole) ||
      (!is_float(from) && is_float(to) && (options.sat || (half ? wide_integer || directed : inexact))) ||
      (half && directed) || (to == ScalarType::f64 && inexact && !options.to_whole) ||
      (options.relu && (!half || !is_float(from))) || (!is_float(from) && options.ftz) ||
      (half && options.sat)) {
    decoding.refuse("this combination of options and types");
  }
}

// operands: result, upper half, lower half
template <typename Format>
void pack_pair(Warp& warp, const Instruction& instruction, LaneMask mask) {
  const auto* upper = warp.source<float>(instruction.operands[1]);
  const auto* lower = warp.source<float>(instruction.operands[2]);
  const Options options = Options::unpacked(instruction.immediate);
  const auto narrow = [&](float value) -> std::uint32_t {
    return Format::narrow(options.relu && value < 0 ? 0.0F : value, options.rounding);
  };
  set_lanes(warp.destination<std::uint32_t>(instruction.operands[0]), mask,
            [&](int l) { return narrow(upper[l]) << 16 | narrow(lower[l]); });
}

void pack_bfloat_pair(Warp& warp, const Instruction& instruction, LaneMask mask) {
  const auto* upper = warp.source<float>(instruction.operands[1]);
  const auto* lower = warp.source<float>(instruction.operands[2]);
  set_lanes(warp.destination<std::uint32_t>(instruction.operands[0]), mask, [=](int l) {
    return static_cast<std::uint32_t>(BFloat16::narrow_float(upper[l])) << 16 |
           BFloat16::narrow_float(lower[l]);
  });
}

void decode_pair(Decoding& decoding, const Options& options, ScalarType to) {
  (void)decoding.type_of({ScalarType::f32});
  decoding.expect_operands(3);
  Instruction& result = decoding.result;
  result.operands[0] = decoding.destination(0, to);
  result.operands[1] = decoding.source(1, ScalarType::f32);
  result.operands[2] = decoding.source(2, ScalarType::f32);
  result.immediate = options.packed();
  if (options.to_whole || options.ftz || options.sat || options.rounding == Rounding::up ||
      options.rounding == Rounding::down) {
    decoding.refuse("this option of a packed conversion");
  }
  if (to == ScalarType::f16x2) {
    result.execute = pack_pair<Float16>;
  } else {
    const bool common = options.rounding == Rounding::nearest_even && !options.relu;
    result.execute = common ? pack_bfloat_pair : pack_pair<BFloat16>;
  }
}

// cvt.rna.tf32.f32: 10 bits of fraction, ties away from zero
struct RoundToTf32 {
  static std::uint32_t of(std::uint32_t bits) {
    return (bits & 0x7f800000U) == 0x7f800000U ? bits : (bits + 0x1000U) & ~0x1fffU;
  }
};

void decode_cvt(Decoding& decoding) {
  if (decoding.take("rna")) {
    (void)decoding.type_of({ScalarType::tf32});
    (void)decoding.type_of({ScalarType::f32});
    decoding.expect_operands(2);
    decoding.result.operands[0] = decoding.destination(0, ScalarType::b32);
    decoding.result.operands[1] = decoding.source(1, ScalarType::f32);
    decoding.result.execute = unary<std::uint32_t, std::uint32_t, RoundToTf32>;
    return;
  }
  const Options options = take_options(decoding);
  const ScalarType to = decoding.type();
  if (to == ScalarType::f16x2 || to == ScalarType::bf16x2) {
    decode_pair(decoding, options, to);
    return;
  }
  const ScalarType from = decoding.type();
  decoding.expect_operands(2);
  Instruction& result = decoding.result;
  int to_bytes = 0;
  int from_bytes = 0;
  result.operands[0] = decoding.wide_register(decoding.operand(0), to, to_bytes);
  result.operands[1] = decoding.wide_source(decoding.operand(1), from, from_bytes);
  result.element_bytes = static_cast<std::uint8_t>(to_bytes);
  result.elements = static_cast<std::uint8_t>(from_bytes);
  result.immediate = options.packed();
  check_options(decoding, options, from, to);
  result.execute = is_float(from) ? from_float(decoding, from, to) : from_integer(decoding, from, to);
}

}  // namespace

void add_convert_opcodes(OpcodeTable& table) {
  table.add("cvt", decode_cvt);
}

}  // namespace hcp::ptx
