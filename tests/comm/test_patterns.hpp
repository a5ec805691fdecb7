/// Bytes that tell who sent them to whom.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hcp {

struct Route {
  int from = 0;
  int to = 0;
  int tag = 0;
};

/// Differs from byte to byte and from route to route; never the zero of fresh memory everywhere.
inline std::byte pattern_byte(const Route& route, std::size_t index) {
  std::uint64_t x = index * 0x9E3779B97F4A7C15U + static_cast<std::uint64_t>(route.from) * 1'000'003U +
                    static_cast<std::uint64_t>(route.to) * 10'007U + static_cast<std::uint64_t>(route.tag) +
                    1;
  x ^= x >> 29;
  x *= 0xBF58476D1CE4E5B9U;
  return static_cast<std::byte>(x >> 56);
}

inline std::vector<std::byte> pattern(const Route& route, std::size_t bytes) {
  std::vector<std::byte> values(bytes);
  for (std::size_t i = 0; i < bytes; ++i) values[i] = pattern_byte(route, i);
  return values;
}

}  // namespace hcp
