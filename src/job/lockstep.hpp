/// The ranks of a CP group verify side by side: they compute inputs again block by block and meet after each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/position_ranges.hpp"
#include "src/job/verification.hpp"

namespace hcp {

class Lockstep {
 public:
  /// @param gather, progress  must outlive this
  Lockstep(const GatherDoubles& gather, const Progress& progress) : gather_{gather}, progress_{progress} {}

  /// Collective.
  [[nodiscard]] std::vector<double> gather(std::span<const double> mine) const {
    progress_();
    return gather_(mine);
  }

  /// Collective. Calls work(block) for the blocks of the positions. All ranks do their n-th block at the same
  /// time: however unequal their work is, none waits for another longer than one block takes.
  template <typename Work>
  void for_each_block(const PositionSet& positions, const Work& work) const {
    const std::vector<PositionSet> blocks = blocks_of(positions);
    const std::size_t rounds = largest(blocks.size());
    for (std::size_t round = 0; round < rounds; ++round) {
      if (round < blocks.size()) {
        progress_();
        work(blocks[round]);
      }
      static_cast<void>(gather({}));
    }
  }

  /// Blocks of rows_per_block positions, the last perhaps of fewer, ascending. A shard may be many ranges of
  /// few rows: to meet after each of them would cost more than what is computed in between.
  [[nodiscard]] static std::vector<PositionSet> blocks_of(const PositionSet& positions) {
    constexpr std::int64_t rows_per_block = 1024;
    const std::int64_t rows = count_of(positions);
    std::vector<PositionSet> blocks;
    for (std::int64_t first = 0; first < rows; first += rows_per_block) {
      blocks.push_back(positions_of({first, std::min(rows_per_block, rows - first)}, positions));
    }
    return blocks;
  }

 private:
  [[nodiscard]] std::size_t largest(std::size_t mine) const {
    const auto number = static_cast<double>(mine);
    return static_cast<std::size_t>(std::ranges::max(gather({&number, 1})));
  }

  const GatherDoubles& gather_;
  const Progress& progress_;
};

}  // namespace hcp
