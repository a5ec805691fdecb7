/// The grid of tensor, context, data and pipeline parallelism, as arithmetic on rank numbers.
///
/// The order is tp-cp-dp-pp, the leftmost fastest: rank = tp + TP·(cp + CP·(dp + DP·pp)). The grid is laid
/// over the ranks renumbered node by node (node_layout.hpp), so the CP ranks of a node are consecutive.
#pragma once

#include <string_view>
#include <vector>

namespace hcp {

/// Ranks along each axis.
struct GridSizes {
  int tp = 1;
  int cp = 1;
  int dp = 1;
  int pp = 1;
  friend bool operator==(const GridSizes&, const GridSizes&) = default;
};

/// Where one rank stands on each axis.
struct GridCoordinates {
  int tp = 0;
  int cp = 0;
  int dp = 0;
  int pp = 0;
  friend bool operator==(const GridCoordinates&, const GridCoordinates&) = default;
};

/// Sizes that have passed validation, and the groups they make.
class RankGrid {
 public:
  /// @throws std::invalid_argument if a size is below 1 or the product exceeds the largest int
  explicit RankGrid(const GridSizes& sizes);

  /// The grid over `world_size` ranks, dp = world_size / (tp·cp·pp).
  /// @throws std::invalid_argument if a size is below 1 or that dp is not whole
  [[nodiscard]] static RankGrid over_world(int world_size, int tp, int cp, int pp);

  [[nodiscard]] const GridSizes& sizes() const noexcept { return sizes_; }
  [[nodiscard]] int world_size() const noexcept { return sizes_.tp * sizes_.cp * sizes_.dp * sizes_.pp; }

  [[nodiscard]] int rank_of(const GridCoordinates& at) const noexcept;
  [[nodiscard]] GridCoordinates coordinates_of(int rank) const noexcept;

  /// All groups of the ranks that differ only along `axes`, a hyphen list such as "cp" or "dp-cp" (the order
  /// of the names means nothing). Groups and the ranks in a group are numbered with the leftmost axis of
  /// tp-cp-dp-pp fastest: inside "dp-cp" the cp index runs fastest, a "cp" group is in CP-rank order.
  /// @throws std::invalid_argument if a name is unknown or given twice
  /// @source Megatron-Core 0.10, megatron/core/parallel_state.py, generate_masked_orthogonal_rank_groups
  [[nodiscard]] std::vector<std::vector<int>> groups(std::string_view axes) const;

  /// The one of groups(axes) that `rank` is in.
  [[nodiscard]] std::vector<int> group_of(int rank, std::string_view axes) const;

 private:
  GridSizes sizes_;
};

}  // namespace hcp
