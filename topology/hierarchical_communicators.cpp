#include "topology/hierarchical_communicators.hpp"

#include <algorithm>
#include <stdexcept>

#include "topology/level_digits.hpp"

namespace hcp {

namespace {

/// This rank's number in the grid, after the three descriptions of the ranks were found to agree.
int checked_grid_rank(const MpiCommunicator& world, const NodeLayout& layout, const RankGrid& grid) {
  const int ranks = world.size();
  if (layout.world_size() != ranks || grid.world_size() != ranks) {
    throw std::invalid_argument{"grid of " + std::to_string(grid.world_size()) +
                                " ranks and node layout of " + std::to_string(layout.world_size()) +
                                " ranks over " + std::to_string(ranks) + " ranks; the three must be equal"};
  }
  return layout.renumbered.at(static_cast<std::size_t>(world.rank()));
}

std::string level_set_name(std::vector<int> levels) {
  std::sort(levels.begin(), levels.end());
  std::string name = levels.size() == 1 ? "level " : "levels ";
  for (std::size_t i = 0; i < levels.size(); ++i) {
    name += (i == 0 ? "" : ",") + std::to_string(levels[i]);
  }
  return name;
}

}  // namespace

HierarchicalCommunicators::HierarchicalCommunicators(const MpiCommunicator& world, const NodeLayout& layout,
                                                     const RankGrid& grid)
    : grid_rank_{checked_grid_rank(world, layout, grid)},
      coordinates_{grid.coordinates_of(grid_rank_)},
      cp_size_{grid.sizes().cp},
      world_{world.split(0, grid_rank_)} {
  created_.push_back({"world", world_.size()});
  if (cp_size_ > 1) {
    const GridSizes& sizes = grid.sizes();
    const int cp_group = coordinates_.tp + sizes.tp * (coordinates_.dp + sizes.dp * coordinates_.pp);
    cp_ = world_.split(cp_group, coordinates_.cp);
    created_.push_back({"cp", cp_size_});
  }
}

std::optional<MpiCommunicator> HierarchicalCommunicators::level_group(const std::vector<int>& level_sizes,
                                                                      const std::vector<int>& levels) {
  check_level_sizes(level_sizes, cp_size_);
  const LevelPlace place = level_place(cp_rank(), level_sizes, levels);
  if (place.size == 1) {
    return std::nullopt;
  }
  std::optional<MpiCommunicator> group = cp_->split(place.group, place.rank);
  created_.push_back({level_set_name(levels), place.size});
  return group;
}

}  // namespace hcp
