/// Random schemes and masks, the same for the same seed on every machine.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "src/exchange/scheme.hpp"
#include "tests/kernels/mask_definition.hpp"
#include "topology/sequence_partition.hpp"

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

  [[nodiscard]] Partition partition() {
    return all_partitions[static_cast<std::size_t>(below(std::ssize(all_partitions)))];
  }

  /// Any kind of mask over up to six documents of at most `longest` tokens.
  [[nodiscard]] test::MaskDefinition mask(std::int64_t longest) {
    const auto kinds = std::ssize(test::all_mask_kinds);
    return test::random_definition(test::all_mask_kinds[below(kinds)], random_, 6, longest);
  }

 private:
  std::mt19937 random_;
};

}  // namespace hcp
