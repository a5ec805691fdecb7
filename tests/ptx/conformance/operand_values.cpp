#include "tests/ptx/conformance/operand_values.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <string_view>

#include "kernels/data_type.hpp"

namespace hcp::ptx {
namespace {

/// 32 random bits a call. The numbers of the engine are the same with every library, those of distributions
/// are not.
class Random {
 public:
  explicit Random(std::string_view name) {
    std::seed_seq seed(name.begin(), name.end());
    engine_.seed(seed);
  }
  std::uint32_t operator()() { return static_cast<std::uint32_t>(engine_()); }

 private:
  std::mt19937 engine_;
};

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

template <typename T, std::size_t count>
T any_of(const std::array<T, count>& values, Random& random) {
  return values[random() % count];
}

/// [0, 1), a multiple of 2^-24.
float fraction(Random& random) {
  return static_cast<float>(random() >> 8) * 0x1p-24F;
}

std::uint32_t any_word(Random& random) {
  constexpr std::array<std::uint32_t, 10> edges{0U,          1U,          2U,      0xffffffffU, 0x7fffffffU,
                                                0x80000000U, 0x80000001U, 0xffffU, 0x10000U,    0x3210U};
  return random() % 4 == 0 ? any_of(edges, random) : random();
}

std::uint32_t any_fp32(Random& random) {
  constexpr std::array edges{0.0F,     -0.0F,    1.0F,      -1.0F,        0.5F,
                             2.0F,     infinity, -infinity, 0x1p-126F,    0x1p-149F,
                             0x1p127F, 65504.0F, 65520.0F,  not_a_number, 0x1.fffffep127F};
  switch (random() % 4) {
    case 0:
      return std::bit_cast<std::uint32_t>(any_of(edges, random));
    case 1:
      return random();
    default: {
      const int exponent = static_cast<int>(random() % 40) - 20;
      const float sign = random() % 2 == 0 ? 1.0F : -1.0F;
      return std::bit_cast<std::uint32_t>(sign * std::ldexp(1.0F + fraction(random), exponent));
    }
  }
}

std::uint32_t any_fp16_pair(Random& random) {
  constexpr std::array<std::uint32_t, 10> edges{0x0000U, 0x8000U, 0x3c00U, 0xbc00U, 0x0001U,
                                                0x03ffU, 0x0400U, 0x7bffU, 0x7c00U, 0xfc00U};
  const auto half = [&] { return random() % 4 == 0 ? any_of(edges, random) : random() >> 16; };
  const std::uint32_t low = half();
  return low | half() << 16;
}

/// A number of the class, as every type has it.
float number(Values values, Random& random) {
  constexpr std::array specials{0.0F, 1.0F, -1.0F, infinity, -infinity, not_a_number};
  switch (values) {
    case Values::whole:
    case Values::whole_bf16:
    case Values::whole_fp16:
      return static_cast<float>(random() % 17) - 8.0F;
    case Values::tiny_bf16:
      return (static_cast<float>(random() % 17) - 8.0F) * 0x1p-133F;
    case Values::tiny_fp16:
      return (static_cast<float>(random() % 17) - 8.0F) * 0x1p-24F;
    case Values::special:
    case Values::special_bf16:
    case Values::special_fp16:
      return any_of(specials, random);
    case Values::positive:
    case Values::positive_bf16:
    case Values::positive_fp16:
      return fraction(random);
    default:
      return 2.0F * fraction(random) - 1.0F;
  }
}

std::uint32_t pair_of(DataType type, Values values, Random& random) {
  const std::array<float, 2> numbers{number(values, random), number(values, random)};
  std::array<std::byte, 4> bytes{};
  round_to(type, numbers.data(), bytes.data(), numbers.size());
  return std::bit_cast<std::uint32_t>(bytes);
}

std::uint32_t draw(Values values, Random& random) {
  switch (values) {
    case Values::zero:
      return 0;
    case Values::word:
      return any_word(random);
    case Values::amount:
      return random() % 71;
    case Values::divisor:
      return (random() >> (1 + random() % 30)) | 1U;
    case Values::fp32:
      return any_fp32(random);
    case Values::fp16_pair:
      return any_fp16_pair(random);
    case Values::whole_bf16:
    case Values::tiny_bf16:
    case Values::special_bf16:
    case Values::positive_bf16:
    case Values::moderate_bf16:
      return pair_of(DataType::bf16, values, random);
    case Values::whole_fp16:
    case Values::tiny_fp16:
    case Values::special_fp16:
    case Values::positive_fp16:
    case Values::moderate_fp16:
      return pair_of(DataType::fp16, values, random);
    default:
      return std::bit_cast<std::uint32_t>(number(values, random));
  }
}

}  // namespace

std::vector<std::uint32_t> operands_of(const MicroKernel& kernel, int threads) {
  Random random{kernel.name};
  std::vector<std::uint32_t> operands;
  for (int thread = 0; thread < threads; ++thread) {
    for (const Values values : kernel.operands) {
      operands.push_back(draw(values, random));
    }
  }
  return operands;
}

}  // namespace hcp::ptx
