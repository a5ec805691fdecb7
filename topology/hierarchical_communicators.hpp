/// The communicators of one rank: the renumbered world, its CP group and the levels inside that.
///
///   4 nodes x 2 ranks:   node      0     1     2     3
///                        ranks   0 1   2 3   4 5   6 7
///   level 0 (same node)          {0,1} {2,3} {4,5} {6,7}
///   level 1 (same local rank)    {0,2,4,6} {1,3,5,7}
///
/// A group of one rank gets no communicator: each costs memory and start-up time, with one rank for nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "topology/mpi_environment.hpp"
#include "topology/node_layout.hpp"
#include "topology/rank_grid.hpp"

namespace hcp {

/// One communicator that was created, for the trace.
struct CommunicatorRecord {
  std::string name;  ///< "world", "cp", "level 0", "levels 0,2"
  int size = 0;
  friend bool operator==(const CommunicatorRecord&, const CommunicatorRecord&) = default;
};

class HierarchicalCommunicators {
 public:
  /// Collective over `world`, whose ranks are the world ranks of `layout`.
  /// @throws std::invalid_argument if layout, grid and communicator disagree about the number of ranks
  HierarchicalCommunicators(const MpiCommunicator& world, const NodeLayout& layout, const RankGrid& grid);

  /// All ranks, in grid order. The only communicator that exists even with one rank.
  [[nodiscard]] const MpiCommunicator& world() const noexcept { return world_; }
  /// This rank's CP group in CP-rank order; none if cp = 1.
  [[nodiscard]] const std::optional<MpiCommunicator>& cp() const noexcept { return cp_; }

  [[nodiscard]] int grid_rank() const noexcept { return grid_rank_; }
  [[nodiscard]] const GridCoordinates& coordinates() const noexcept { return coordinates_; }
  [[nodiscard]] int cp_rank() const noexcept { return coordinates_.cp; }
  [[nodiscard]] int cp_size() const noexcept { return cp_size_; }

  /// Collective over the CP group. The ranks of it that differ from this one only in the digits of `levels`,
  /// ordered by these digits, inner fastest (level_digits.hpp: rank and size are those of level_place).
  /// None if the group is this rank alone.
  /// @throws std::invalid_argument if the sizes do not multiply to cp or a level does not exist; MpiError
  [[nodiscard]] std::optional<MpiCommunicator> level_group(const std::vector<int>& level_sizes,
                                                           const std::vector<int>& levels);

  /// What was created so far, in order.
  [[nodiscard]] const std::vector<CommunicatorRecord>& created() const noexcept { return created_; }

 private:
  int grid_rank_;
  GridCoordinates coordinates_;
  int cp_size_;
  MpiCommunicator world_;
  std::optional<MpiCommunicator> cp_;
  std::vector<CommunicatorRecord> created_;
};

}  // namespace hcp
