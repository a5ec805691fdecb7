/// Operations on two integers of one type that several instructions have in common.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace hcp::ptx {

/// At least 32 bits, so that nothing is promoted to int.
template <typename T>
using Unsigned = std::conditional_t<sizeof(T) < 4, std::uint32_t, std::make_unsigned_t<T>>;

struct Add {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
  }
};
struct Subtract {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b));
  }
};
struct Minimum {
  template <typename T>
  static T of(T a, T b) {
    return std::min(a, b);
  }
};
struct Maximum {
  template <typename T>
  static T of(T a, T b) {
    return std::max(a, b);
  }
};
struct And {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct ExclusiveOr {
  template <typename T>
  static T of(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

}  // namespace hcp::ptx
