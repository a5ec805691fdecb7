/// Random schemes and documents, the same for the same seed on every machine.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "src/exchange/scheme.hpp"

namespace hcp {

/// std::mt19937 alone: the standard's distributions differ between libraries.
class RandomPlans {
 public:
  explicit RandomPlans(std::uint32_t seed) : random_{seed} {}

  /// Of 0, 1, … choices - 1.
  [[nodiscard]] std::int64_t below(std::int64_t choices) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint32_t>(choices));
  }
  template <typename Value>
  [[nodiscard]] Value one_of(const std::vector<Value>& values) {
    return values[static_cast<std::size_t>(below(std::ssize(values)))];
  }
  [[nodiscard]] bool coin() { return below(2) == 0; }

  /// One to `most_levels` levels of any algorithms, of at most `most_ranks` ranks together.
  [[nodiscard]] std::vector<Level> levels(int most_levels, int most_ranks) {
    std::vector<Level> levels;
    int ranks = 1;
    for (std::int64_t left = 1 + below(most_levels); left > 0; --left) {
      const int size = 2 + static_cast<int>(below(4));
      if (ranks * size > most_ranks) {
        break;
      }
      levels.push_back({one_of(std::vector{Algorithm::p2p, Algorithm::all_gather, Algorithm::a2a}), size});
      ranks *= size;
    }
    return levels;
  }

  /// One to six documents of less than `longest` tokens, some short or empty, with at least one token.
  [[nodiscard]] std::vector<std::int64_t> documents(std::int64_t longest) {
    std::vector<std::int64_t> lengths(static_cast<std::size_t>(1 + below(6)));
    for (std::int64_t& length : lengths) {
      length = below(coin() ? longest : 6);
    }
    lengths.front() += 1;
    return lengths;
  }

 private:
  std::mt19937 random_;
};

}  // namespace hcp
