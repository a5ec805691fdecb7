#include <stdexcept>
#include <vector>

#include "src/job/input.hpp"

namespace hcp {
namespace {

constexpr std::uint64_t golden_gamma = 0x9e37'79b9'7f4a'7c15;

/// A bijection whose result looks random.
constexpr std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58'476d'1ce4'e5b9;
  z = (z ^ (z >> 27)) * 0x94d0'49bb'1331'11eb;
  return z ^ (z >> 31);
}

constexpr std::uint64_t with_key(std::uint64_t state, std::uint64_t key) {
  return mixed(state + (key + 1) * golden_gamma);
}

/// The sum of two uniform numbers of 16 bits each, scaled to variance 1.
float triangular(std::uint32_t bits) {
  constexpr float scale = 2.4494897F / 65536.0F;  // sqrt(6) per unit: each number has variance 1/12
  const auto sum = static_cast<std::int32_t>((bits & 0xffff) + (bits >> 16));
  return scale * static_cast<float>(sum - 65535);
}

/// The channels of one token and head.
void fill_channels(std::uint64_t state, std::vector<float>& channels) {
  for (std::size_t i = 0; i < channels.size(); i += 2) {  // one hash has the bits of two channels
    state += golden_gamma;
    const std::uint64_t bits = mixed(state);
    channels[i] = triangular(static_cast<std::uint32_t>(bits));
    if (i + 1 < channels.size()) {
      channels[i + 1] = triangular(static_cast<std::uint32_t>(bits >> 32));
    }
  }
}

class SyntheticInput final : public InputSource {
 public:
  explicit SyntheticInput(std::uint64_t seed) : seed_{seed} {}

  void fill(InputTensor tensor, const PositionSet& rows, std::int64_t first_head, int layer,
            TensorView target) const override {
    if (tensor == InputTensor::out) {
      throw std::logic_error{"out of synthetic values is not known"};
    }
    if (target.rows != count_of(rows)) {
      throw std::logic_error{"the tensor has not one row per position"};
    }
    const std::uint64_t of_tensor = with_key(with_key(with_key(0, seed_), static_cast<std::uint64_t>(layer)),
                                             static_cast<std::uint64_t>(tensor));
    std::vector<float> channels(static_cast<std::size_t>(target.dim));
    std::byte* next = target.data;
    for (const PositionRange range : rows) {
      for (std::int64_t token = range.begin; token < range.end; ++token) {
        const std::uint64_t of_token = with_key(of_tensor, static_cast<std::uint64_t>(token));
        for (std::int64_t head = first_head; head < first_head + target.heads; ++head) {
          fill_channels(with_key(of_token, static_cast<std::uint64_t>(head)), channels);
          round_to(target.type, channels.data(), next, channels.size());
          next += channels.size() * size_of(target.type);
        }
      }
    }
  }

  [[nodiscard]] bool has_out() const override { return false; }

 private:
  std::uint64_t seed_;
};

}  // namespace

std::vector<float> synthetic_sinks(std::uint64_t seed, int layer, std::int64_t first_head,
                                   std::int64_t heads) {
  constexpr auto after_the_tensors = static_cast<std::uint64_t>(InputTensor::out) + 1;
  const std::uint64_t of_sinks =
      with_key(with_key(with_key(0, seed), static_cast<std::uint64_t>(layer)), after_the_tensors);
  std::vector<float> sinks;
  for (std::int64_t head = first_head; head < first_head + heads; ++head) {
    sinks.push_back(
        triangular(static_cast<std::uint32_t>(with_key(of_sinks, static_cast<std::uint64_t>(head)))));
  }
  return sinks;
}

std::unique_ptr<InputSource> make_synthetic_input(std::uint64_t seed) {
  return std::make_unique<SyntheticInput>(seed);
}

}  // namespace hcp
